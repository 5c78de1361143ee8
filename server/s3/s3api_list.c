/* ListObjects and ListObjectsV2. */
#include "http/exchange/s3api_error.h"
#include "s3/handlers.h"

enum outcome s3api_list_objects(struct request *request)
{
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}
