/* The query parameters of lists. An absent or empty parameter keeps the default. */
#ifndef S3_S3API_QUERY_H
#define S3_S3API_QUERY_H

#include "http/exchange/request.h"

/* Reads and decodes a parameter; '+' is a blank, as some SDKs write it. *out_text is empty if it is
 * absent, and lives as long as the request. Returns false if it has replied with
 * InvalidArgument. */
bool s3api_query_text(struct request *request, const char *name, bool *out_is_there,
                      struct zt_text *out_text);

/* Reads a number; an absent or empty one is not changed. Returns false if it has replied. */
bool s3api_query_number(struct request *request, const char *name, uint64_t least, uint64_t most,
                        uint64_t *number);

/* Reads the maximum number of items of a page; at most and by default S3API_PAGE_MAX. Returns false
 * if it has replied. */
bool s3api_query_limit(struct request *request, const char *name, size_t *out_limit);

/* Reads encoding-type: whether keys are to be percent-encoded. Returns false if it has replied. */
bool s3api_query_encoding(struct request *request, bool *out_is_url);

#endif
