/* Uploads in parts. */
#include "http/exchange/s3api_error.h"
#include "s3/write/handlers.h"

void s3api_create_multipart_begin(struct request *request)
{
    s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_create_multipart(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

void s3api_upload_part_begin(struct request *request)
{
    s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_upload_part(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

void s3api_upload_part_copy_begin(struct request *request)
{
    s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_upload_part_copy(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_list_parts(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_list_uploads(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

void s3api_complete_multipart_begin(struct request *request)
{
    s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_complete_multipart(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

void s3api_abort_multipart_begin(struct request *request)
{
    s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_abort_multipart(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}
