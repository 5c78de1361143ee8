/* Requests of S3 that have the same path and method differ in their query: "?uploads",
 * "?uploadId=…&partNumber=…". A table names the query parameters of each operation. */
#ifndef S3_S3API_OPERATIONS_H
#define S3_S3API_OPERATIONS_H

#include "http/exchange/router.h"

struct s3api_operation {
    enum method method;
    /* The query parameter that the request must have, and a second one. NULL: none. */
    const char *parameter;
    const char *second;
    const char *header; /* a header field that it must have; NULL: none */
    struct operation operation;
};

/* Returns the first operation of the table that fits the request. Returns NULL if it has replied:
 * 501 if the query names a resource of S3 that this server does not have, such as acl, and 405 if
 * the method has no operation. */
const struct operation *s3api_choose(struct request *request,
                                     const struct s3api_operation *operations, size_t count);

#endif
