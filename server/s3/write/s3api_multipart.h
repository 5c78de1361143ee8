/* Shared by the handlers of multipart uploads. */
#ifndef S3_WRITE_S3API_MULTIPART_H
#define S3_WRITE_S3API_MULTIPART_H

#include "s3/write/s3api_upload.h"

/* Finds the upload that a request's query names, and holds it for the request. Returns NULL if it
 * has replied. */
struct s3api_upload *s3api_multipart_find(struct request *request, struct zt_text key);
/* Reads the number of a part. Returns false if it has replied. */
bool s3api_query_part(struct request *request, uint32_t *out_number);

#endif
