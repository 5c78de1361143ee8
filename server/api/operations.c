/* Verification of a model, and responses about the server: health, readiness, version, and the
 * description of the API.
 *
 * The build embeds this folder's openapi.json, with the program's version in it (embed.cmake). A
 * test compares it with the routes. */
#include <assert.h>
#include <string.h>

#include "api/handlers.h"
#include "api/json_reply.h"
#include "api/resolve.h"
#include "catalog/catalog.h"
#include "store/store.h"
#include "verify/verifier.h"

/* --- verification --- */

static enum outcome report(struct request *request, unsigned status)
{
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    assert(request->generation != NULL);
    verifier_report(request->generation, json);
    return json_reply_send_now(request, json, status);
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
    verifier_start(request->server->verifier, request->generation, request_client_key(request));
    return report(request, 202);
}

/* --- health --- */

static enum outcome answer(struct request *request, const char *text)
{
    reply_json(request, 200, text, strlen(text));
    request->reply.cache_control = "no-store";
    return OUTCOME_READY;
}

enum outcome healthz_get(struct request *request)
{
    return answer(request, "{\"status\":\"ok\"}\n");
}

/* Returns why a remote store makes the server not ready, or NULL. Until the store was reached once,
 * only cached data can be served, and even that may be outdated. */
static const char *store_suspicion(const struct server *server)
{
    struct store_report report;

    if (!store_needs_claims(server->store))
        return NULL;
    server->store->search->report(server->store, &report);
    if (!report.was_reached)
        return "the object store has not been reached yet";
    return report.is_unreachable && !config_flag(&server->config->s3.ready_when_away)
               ? "the object store is unreachable"
               : NULL;
}

/* Sends {"status":"ready"}; for a bucket, how uploads are published; and whether all upstreams
 * answer. */
static enum outcome answer_ready(struct request *request)
{
    struct store *store = request->server->store;
    const char *upstreams = upstreams_state(request->server);
    struct store_report report;
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_string_member(json, "status", "ready");
    if (store_needs_claims(store)) {
        store->search->report(store, &report);
        json_string_member(json, "store", report.is_unreachable ? "away" : "reached");
        json_string_member(json, "uploads", report.writes);
    }
    if (upstreams != NULL)
        json_string_member(json, "upstreams", upstreams);
    json_object_end(json);
    return json_reply_send_now(request, json, 200);
}

enum outcome readyz_get(struct request *request)
{
    struct server *server = request->server;
    const char *suspicion;

    if (atomic_load(&server->draining))
        return problem_reply(request, PROBLEM_DRAINING, "the server is shutting down");
    suspicion = store_suspicion(server);
    if (suspicion != NULL)
        return problem_reply(request, PROBLEM_STORE_UNAVAILABLE, "%s", suspicion);
    if (!catalog_is_loaded(server->catalog))
        return problem_reply(request, PROBLEM_OVERLOADED, "the models are being loaded");
    if (!verifier_is_ready(server->verifier))
        return problem_reply(request, PROBLEM_OVERLOADED, "the models are being verified");
    return answer_ready(request);
}

enum outcome version_get(struct request *request)
{
    return answer(request, "{\"version\":\"" ZTSERVE_VERSION "\"}\n");
}

/* --- the description of the API --- */

/* Compresses the text. A step, because a 304 needs no text. */
static enum outcome step_compress(struct request *request)
{
    struct json_reply *reply = request->context;

    if (reply->json == NULL) {
        reply->json = json_reply_new(request, false);
        if (reply->json == NULL)
            return OUTCOME_READY;
        json_raw(reply->json, openapi_text, openapi_length);
    }
    return json_reply_encode(request, reply) == OUTCOME_WAITING
               ? OUTCOME_WAITING
               : json_reply_send(request, reply->json);
}

enum outcome openapi_get(struct request *request)
{
    struct representation *reply = &request->reply;
    struct json_reply *coded = request_new_context(request, sizeof(*coded));

    if (coded == NULL || !json_reply_negotiate(request, coded))
        return OUTCOME_READY;
    reply->etag = json_reply_etag(request, coded, openapi_etag);
    reply->cache_control = "no-cache";
    reply->media_type = "application/json";
    if (coded->coding == CODING_IDENTITY) {
        representation_memory(reply, openapi_text, openapi_length);
    } else {
        reply->coding = coding_name(coded->coding);
        representation_step(reply, "compress", step_compress);
    }
    return OUTCOME_READY;
}
