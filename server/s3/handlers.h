/* The handlers of the S3 API that read (s3_routes.c), each in the file named here. The names of
 * these routes are passed undecoded (s3api_request.h). */
#ifndef S3_HANDLERS_H
#define S3_HANDLERS_H

#include "http/exchange/request.h"

/* s3api_bucket.c: the bucket. CreateBucket succeeds for the bucket that exists. */
enum outcome s3api_list_buckets(struct request *request);
enum outcome s3api_head_bucket(struct request *request);
enum outcome s3api_get_location(struct request *request);
void s3api_create_bucket_begin(struct request *request);
enum outcome s3api_create_bucket(struct request *request);
enum outcome s3api_delete_bucket(struct request *request);

/* s3api_list.c: the keys, both versions of the list. */
enum outcome s3api_list_objects(struct request *request);

/* s3api_object.c: an object; also for HEAD. */
enum outcome s3api_get_object(struct request *request);

#endif
