/* A part of a multipart upload on its way into a file:
 *
 *     arrival = s3api_arrival_begin(upload, number, length, &failure);
 *     s3api_arrival_write(arrival, bytes, length, &failure);      … in order
 *     s3api_arrival_finish(arrival, &checksum, &part, &failure);  durable, and recorded
 *     s3api_arrival_end(arrival);                                 at any time
 *
 * An arrival belongs to one request. A number may have several arrivals at once: the last to finish
 * counts. */
#ifndef S3_WRITE_S3API_ARRIVAL_H
#define S3_WRITE_S3API_ARRIVAL_H

#include "s3/write/s3api_upload.h"

/* The length of a part that is not known before its end. */
#define S3API_UNKNOWN UINT64_MAX

/* Begins a part of this length, or S3API_UNKNOWN. Holds the upload until the end. Returns NULL with
 * failure set: PROBLEM_UPLOAD_NOT_FOUND if the upload is over, PROBLEM_TOO_LARGE,
 * PROBLEM_INSUFFICIENT_STORAGE. Fast. */
struct s3api_arrival *s3api_arrival_begin(struct s3api_upload *upload, uint32_t number,
                                          uint64_t length, struct failure *failure);
/* Appends bytes. Returns false with failure set; the part must then be ended. */
bool s3api_arrival_write(struct s3api_arrival *arrival, const void *bytes, size_t length,
                         struct failure *failure);
/* Copies bytes of a file instead. On a worker. */
bool s3api_arrival_copy(struct s3api_arrival *arrival, struct zt_source *source, uint64_t offset,
                        uint64_t length, struct failure *failure);
/* Makes the part durable, and records it. checksum is copied; client is request_client_key. On a
 * worker. Returns false with failure set. */
bool s3api_arrival_finish(struct s3api_arrival *arrival, const struct s3api_part_checksum *checksum,
                          uint64_t client, struct s3api_part *out_part, struct failure *failure);
/* Removes the part unless it is finished. Accepts NULL. From any thread. */
void s3api_arrival_end(struct s3api_arrival *arrival);

/* --- for s3api_upload.c, with the upload's lock --- */

/* Makes all writing fail that begins from now on. */
void s3api_arrivals_revoke(struct s3api_upload *upload);
/* Ends the use of the common file by revoked parts. */
void s3api_arrivals_leave(struct s3api_upload *upload);

#endif
