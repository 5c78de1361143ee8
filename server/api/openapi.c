/* The description of this interface: a text that is part of the program. */
#include "api/openapi.h"

#include "api/coded_reply.h"
#include "api/resolve.h"

/* A 304 needs no text. */
static enum outcome step_compress(struct request *request)
{
    struct coded_reply *coded = request->context;

    if (coded->json == NULL) {
        coded->json = request_json(request, false);
        if (coded->json == NULL)
            return OUTCOME_READY;
        json_raw(coded->json, openapi_text, openapi_length);
    }
    return coded_reply_code(request, coded) == OUTCOME_WAITING
               ? OUTCOME_WAITING
               : reply_written(request, coded->json);
}

enum outcome openapi_get(struct request *request)
{
    struct representation *reply = &request->reply;
    struct coded_reply *coded = request_allocate(request, sizeof(*coded));

    if (coded == NULL)
        return problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
    *coded = (struct coded_reply){.json = NULL};
    request->context = coded;
    if (!coded_reply_choose(request, coded))
        return OUTCOME_READY;
    reply->etag = coded_reply_etag(request, coded, openapi_etag);
    reply->cache_control = "no-cache";
    reply->media_type = "application/json";
    if (coded->coding == CODING_IDENTITY) {
        representation_memory(reply, openapi_text, openapi_length);
    } else {
        reply->coding = coding_name(coded->coding);
        representation_step(reply, step_compress);
    }
    return OUTCOME_READY;
}
