/* The description of this interface: a text that is part of the program. */
#include "api/openapi.h"

enum outcome openapi_get(struct request *request)
{
    struct representation *reply = &request->reply;
    reply->etag = openapi_etag;
    reply->cache_control = "no-cache";
    reply->media_type = "application/json";
    representation_memory(reply, openapi_text, openapi_length);
    return OUTCOME_READY;
}
