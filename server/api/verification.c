/* The verifier's report as it is at this moment; POST begins the hashing and answers with the
 * report too. */
#include "api/verification.h"

#include "api/resolve.h"
#include "verify/verifier.h"

static enum outcome report(struct request *request, unsigned status)
{
    struct json *json = request_json(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    verifier_report(request->server->verifier, request->generation, json);
    reply_written(request, json);
    if (!json->failed) {
        request->reply.status = status;
        request->reply.cache_control = "no-store";
    }
    return OUTCOME_READY;
}

enum outcome verification_get(struct request *request)
{
    enum outcome outcome;

    return model_resolve(request, &outcome) ? report(request, 200) : outcome;
}

enum outcome verification_post(struct request *request)
{
    enum outcome outcome;

    if (!model_resolve(request, &outcome))
        return outcome;
    verifier_start(request->server->verifier, request->generation);
    return report(request, 202);
}
