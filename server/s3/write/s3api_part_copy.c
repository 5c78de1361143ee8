/* UploadPartCopy. */
#include "http/exchange/s3api_error.h"
#include "s3/write/handlers.h"

void s3api_upload_part_copy_begin(struct request *request)
{
    s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}

enum outcome s3api_upload_part_copy(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}
