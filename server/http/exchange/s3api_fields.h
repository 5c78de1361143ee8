/* Header fields of the S3 API that concern every answer with bytes. */
#ifndef HTTP_EXCHANGE_S3API_FIELDS_H
#define HTTP_EXCHANGE_S3API_FIELDS_H

#include "http/exchange/request.h"

/* Returns the value of If-Match or If-None-Match in the form of RFC 9110; NULL if it is absent.
 * Clients of S3 also send one tag without quotes. */
const char *s3api_tags(struct request *request, const char *name);
/* Does the same for a value that is not a header field; NULL if it is NULL. */
const char *s3api_quoted(struct request *request, const char *value);

/* Returns true if the client wants a checksum of the part that is sent (x-amz-checksum-mode), and
 * the part is short enough to be hashed before it is sent. */
bool s3api_wants_checksum(struct request *request);

/* Returns the key under which the checksum of the part that is sent is remembered; NULL if there is
 * none. */
const char *s3api_checksum_key(struct request *request);

/* Returns the SHA-256 of exactly the bytes that are sent, in base64; NULL if it is unknown.
 * *out_is_whole: they are the whole object. */
const char *s3api_checksum(struct request *request, bool *out_is_whole);

#endif
