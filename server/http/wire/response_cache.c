/* A hash table without chains: a new entry replaces the old entry in its slot. */
#include "http/wire/response_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/log.h"
#include "http/exchange/client.h"
#include "http/exchange/request_state.h"
#include "http/exchange/trace.h"
#include "http/wire/connections.h"
#include "http/wire/loop.h"
#include "http/wire/mhd_state.h"
#include "http/wire/sender.h"
#include "zt/digest.h"

struct kept_answer {
    unsigned users; /* the table, and requests that use it */
    struct MHD_Response *response;
    struct lease *lease; /* held; NULL: the server has no access (tests) */
    uint64_t changes;    /* base/changes.h, read before the answer was made */
    uint64_t until_ms;
    const struct route *route;
    const char *client; /* owned by the lease's data, or NULL */
    struct answer answer;
    uint64_t head_bytes;
    uint64_t hash;
    char id[REQUEST_ID_SIZE]; /* of the request for which it was made; S3 answers contain it */
    size_t model_length;
    size_t key_length;
    char texts[]; /* the name of the model, followed by the key */
};

/* --- requests --- */

static bool put(struct response_cache *kept, const char *text, size_t length)
{
    assert(kept->key_length <= KEPT_KEY_MAX);
    if (length >= KEPT_KEY_MAX - kept->key_length)
        return false;
    memcpy(kept->key + kept->key_length, text, length);
    kept->key_length += length;
    /* NUL is a safe separator: no text of a well-formed header contains it. */
    kept->key[kept->key_length++] = '\0';
    return true;
}

/* Writes everything that the answer may depend on. Returns false if that is too long. */
static bool make_key(struct response_cache *kept, const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const char method = (char)(request->method + (state->is_of_s3_listener ? METHOD_UNKNOWN : 0));

    kept->key_length = 0;
    if (!put(kept, &method, 1) || !put(kept, state->target, state->target_length))
        return false;
    for (unsigned i = 0; i < state->header_count; i++)
        if (!put(kept, state->headers[i].name, state->headers[i].name_length) ||
            !put(kept, state->headers[i].value, state->headers[i].value_length))
            return false;
    return true;
}

/* With TLS, the client's identity may depend on the connection, so such answers are not cached. */
static bool may_be_kept(const struct request *request)
{
    const struct request_state *state = request_state_const(request);

    return (request->method == METHOD_GET || request->method == METHOD_HEAD) &&
           request->connection->tls == NULL && !request->connection->is_surplus &&
           !state->method_malformed && !state->headers_cut && !state->headers_long &&
           !state->headers_hidden && !atomic_load(&request->server->draining);
}

static struct lease *lease_of(const struct request *request)
{
    return loop_lease(request->connection->mhd->loop);
}

/* --- one answer --- */

static void release(void *thing)
{
    struct kept_answer *answer = thing;

    assert(answer->users > 0);
    if (--answer->users > 0)
        return;
    sender_release(answer->response);
    if (answer->lease != NULL)
        lease_end(answer->lease);
    free(answer);
}

static void drop(struct kept_answer **place)
{
    if (*place != NULL)
        release(*place);
    *place = NULL;
}

static bool is_valid(const struct kept_answer *answer, const struct request *request,
                     uint64_t now_ms)
{
    return now_ms < answer->until_ms && answer->changes == request_state_const(request)->changes &&
           answer->lease == lease_of(request);
}

static const char *key_of(const struct kept_answer *answer)
{
    assert(answer->users > 0);
    return answer->texts + answer->model_length;
}

bool response_cache_find(struct response_cache *kept, struct request *request, uint64_t now_ms)
{
    struct request_state *state = request_state(request);
    struct kept_answer **place;

    if (!may_be_kept(request) || !make_key(kept, request))
        return false;
    state->changes = changes_count();
    state->key_hash = zt_xxh3(kept->key, kept->key_length) | 1;
    place = &kept->answers[state->key_hash / 2 % KEPT_ANSWERS];
    if (*place == NULL || (*place)->hash != state->key_hash)
        return false;
    if (!is_valid(*place, request, now_ms)) {
        drop(place);
        return false;
    }
    if ((*place)->key_length != kept->key_length ||
        memcmp(key_of(*place), kept->key, kept->key_length) != 0)
        return false;
    state->kept = *place;
    (*place)->users++;
    request_hold(request, *place, release);
    return true;
}

/* Fills in the values for the log and the metrics. */
struct MHD_Response *response_cache_give(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct kept_answer *kept = state->kept;

    assert(kept != NULL && kept->users > 0);
    request->route = kept->route;
    if (kept->client != NULL)
        request_set_client(request, kept->client);
    request->names[0] = (struct zt_text){kept->texts, kept->model_length};
    if (request_is_s3(request))
        memcpy(request->id, kept->id, sizeof(request->id));
    else if (log_enabled(LOG_LEVEL_INFO))
        trace_make_id(request->id);
    state->answer = kept->answer;
    state->head_bytes = kept->head_bytes;
    state->received_ns = state->started_ns;
    return kept->response;
}

/* --- keeping --- */

/* Returns false if the answer is large, had to be gathered or fetched, or has fields for this
 * request only. */
static bool is_keepable(const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct answer *answer = &state->answer;

    return state->key_hash != 0 && request->reply.lasting && !state->has_problem &&
           answer->status < 400 && !answer->close && answer->segment_count <= 1 &&
           answer->content_length != ANSWER_LENGTH_UNKNOWN &&
           (answer->segment_count == 0 || answer->content_length <= KEPT_BYTES_MAX) &&
           (state->sending == SENDING_BUFFER || state->sending == SENDING_MAPPED) &&
           state->loaded == NULL && state->body_length == 0 && !state->has_own_id &&
           state->trace_id[0] == '\0' && state->timing == NULL &&
           (request->grant == NULL || request->client == request->grant->name);
}

static struct kept_answer *make(const struct response_cache *kept, struct request *request,
                                uint64_t now_ms)
{
    const struct request_state *state = request_state(request);
    const struct zt_text model = request->names[0];
    struct kept_answer *answer = malloc(sizeof(*answer) + model.length + kept->key_length);

    assert(kept->key_length > 0 && state->key_hash != 0);
    if (answer == NULL)
        return NULL;
    *answer = (struct kept_answer){.users = 1,
                                   .changes = state->changes,
                                   .until_ms = now_ms + KEPT_MS,
                                   .route = request->route,
                                   .client = request->client,
                                   .answer = state->answer,
                                   .head_bytes = state->head_bytes,
                                   .hash = state->key_hash,
                                   .model_length = model.length,
                                   .key_length = kept->key_length};
    answer->answer.segments = NULL;
    answer->answer.fields = NULL;
    answer->answer.field_count = 0;
    memcpy(answer->id, request->id, sizeof(answer->id));
    if (model.length > 0)
        memcpy(answer->texts, model.bytes, model.length);
    memcpy(answer->texts + model.length, kept->key, kept->key_length);
    answer->response = sender_copy(request);
    if (answer->response == NULL) {
        free(answer);
        return NULL;
    }
    answer->lease = lease_of(request);
    if (answer->lease != NULL)
        lease_use(answer->lease);
    return answer;
}

/* Checks one more entry per call, so that none is kept forever. */
static void drop_an_old_one(struct response_cache *kept, uint64_t now_ms)
{
    struct kept_answer **place = &kept->answers[kept->looked_at++ % KEPT_ANSWERS];

    if (*place != NULL && now_ms >= (*place)->until_ms)
        drop(place);
}

void response_cache_offer(struct response_cache *kept, struct request *request, uint64_t now_ms)
{
    const uint64_t hash = request_state_const(request)->key_hash;
    const size_t place = hash / 2 % KEPT_ANSWERS;

    if (!is_keepable(request))
        return;
    drop_an_old_one(kept, now_ms);
    if (kept->asked[place] != hash) {
        kept->asked[place] = hash;
        return;
    }
    if (!make_key(kept, request))
        return;
    drop(&kept->answers[place]);
    kept->answers[place] = make(kept, request, now_ms);
}

void response_cache_clear(struct response_cache *kept)
{
    for (unsigned i = 0; i < KEPT_ANSWERS; i++)
        drop(&kept->answers[i]);
}
