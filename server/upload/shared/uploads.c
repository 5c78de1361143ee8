/* The registry's list as it is at this moment. */
#include "upload/shared/uploads.h"

#include "api/json_reply.h"
#include "api/parameters.h"
#include "upload/shared/registry.h"

enum outcome uploads_list(struct request *request)
{
    bool pretty;
    struct json *json;

    if (!parameter_switch(request, "pretty", &pretty))
        return OUTCOME_READY;
    json = json_reply_new(request, pretty);
    if (json == NULL)
        return OUTCOME_READY;
    registry_write(request->server->registry, json);
    json_reply_send(request, json);
    if (!json->failed)
        request->reply.cache_control = "no-store";
    return OUTCOME_READY;
}
