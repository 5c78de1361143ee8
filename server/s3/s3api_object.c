/* HeadObject and GetObject. */
#include "http/exchange/s3api_error.h"
#include "s3/handlers.h"
#include "s3/s3api_request.h"

enum outcome s3api_get_object(struct request *request)
{
    struct zt_text key;

    if (!s3api_find_key(request, &key))
        return OUTCOME_READY;
    return s3api_problem(request, S3API_NOT_IMPLEMENTED, "this operation is not supported yet");
}
