/* The handlers of the S3 API that write (s3_routes.c), each in the file named here. */
#ifndef S3_WRITE_HANDLERS_H
#define S3_WRITE_HANDLERS_H

#include "http/exchange/request.h"

/* s3api_put.c */
void s3api_put_object_begin(struct request *request);
enum outcome s3api_put_object(struct request *request);

/* s3api_copy.c */
void s3api_copy_object_begin(struct request *request);
enum outcome s3api_copy_object(struct request *request);

/* s3api_delete.c: one object, or those that the body names. */
void s3api_delete_object_begin(struct request *request);
enum outcome s3api_delete_object(struct request *request);
void s3api_delete_objects_begin(struct request *request);
enum outcome s3api_delete_objects(struct request *request);

/* s3api_multipart.c, s3api_part.c, s3api_part_copy.c, s3api_part_lists.c, s3api_complete.c: uploads
 * in parts. */
void s3api_create_multipart_begin(struct request *request);
enum outcome s3api_create_multipart(struct request *request);
void s3api_upload_part_begin(struct request *request);
enum outcome s3api_upload_part(struct request *request);
void s3api_upload_part_copy_begin(struct request *request);
enum outcome s3api_upload_part_copy(struct request *request);
enum outcome s3api_list_parts(struct request *request);
enum outcome s3api_list_uploads(struct request *request);
void s3api_complete_multipart_begin(struct request *request);
enum outcome s3api_complete_multipart(struct request *request);
void s3api_abort_multipart_begin(struct request *request);
enum outcome s3api_abort_multipart(struct request *request);

#endif
