/* Answers that nobody may keep: they are about this moment. */
#include "api/operations.h"

#include <string.h>

#include "catalog/catalog.h"
#include "http/exchange/problem.h"
#include "verify/verifier.h"

static enum outcome answer(struct request *request, const char *text)
{
    reply_json(request, 200, text, strlen(text));
    request->reply.cache_control = "no-store";
    return OUTCOME_READY;
}

enum outcome healthz_get(struct request *request)
{
    return answer(request, "{\"status\":\"ok\"}");
}

enum outcome readyz_get(struct request *request)
{
    struct server *server = request->server;

    if (atomic_load(&server->draining))
        return problem_reply(request, PROBLEM_DRAINING, "the server is shutting down");
    if (!catalog_is_loaded(server->catalog))
        return problem_reply(request, PROBLEM_OVERLOADED, "the models are being loaded");
    if (!verifier_is_ready(server->verifier))
        return problem_reply(request, PROBLEM_OVERLOADED, "the models are being verified");
    return answer(request, "{\"status\":\"ready\"}");
}

enum outcome version_get(struct request *request)
{
    return answer(request, "{\"version\":\"" ZTSERVE_VERSION "\"}");
}
