/* A hash table without chains: a new entry replaces the old entry in its slot. A request that is
 * answered from it passes through the same functions at its beginning and its end as any other, so
 * the log and the metrics do not differ. */
#include "http/wire/response_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/changes.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/exchange/client.h"
#include "http/exchange/request_state.h"
#include "http/exchange/trace.h"
#include "http/tls/tls_session.h"
#include "http/wire/bulk.h"
#include "http/wire/connections.h"
#include "http/wire/direct_answer.h"
#include "http/wire/handler.h"
#include "http/wire/loop.h"
#include "http/wire/mhd_state.h"
#include "zt/digest.h"

struct kept_answer {
    unsigned users;      /* the table, and requests that use it */
    struct lease *lease; /* held; NULL: the server has no access (tests) */
    uint64_t changes;    /* base/changes.h, read before the answer was made */
    uint64_t until_ms;
    uint64_t hash;
    bool is_of_s3;            /* as in struct connection: it says what paths mean */
    char id[REQUEST_ID_SIZE]; /* of the request for which it was made; S3 answers contain it */
    enum method method;
    const struct route *route;
    const char *client; /* owned by the lease's data, or NULL */
    struct answer answer;
    /* These point into texts. */
    const char *key; /* the request */
    size_t key_length;
    const char *target;
    struct zt_text model; /* its name */
    char *text;           /* the answer: its head, then its body */
    size_t head_length;
    size_t text_length;
    unsigned header_count;
    struct header_field headers[]; /* of the request; texts follow */
};

/* --- one answer --- */

static void release(void *thing)
{
    struct kept_answer *answer = thing;

    assert(answer->users > 0);
    if (--answer->users > 0)
        return;
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

/* Completes a request for the answer's target: it holds the answer, and has the values for the log
 * and the metrics. */
static void complete(struct kept_answer *answer, struct request *request)
{
    struct request_state *state = request_state(request);

    assert(state->kept == NULL && state->header_count == 0);
    answer->users++;
    request_hold(request, answer, release);
    state->kept = answer;
    request->method = answer->method;
    request->route = answer->route;
    request->names[0] = answer->model;
    state->header_bytes = answer->key_length;
    memcpy(state->headers, answer->headers, answer->header_count * sizeof(answer->headers[0]));
    state->header_count = answer->header_count;
    if (request->access->proxies.count > 0)
        request_find_forwarded(request);
    if (answer->client != NULL)
        request_set_client(request, answer->client);
    if (request_is_s3(request))
        memcpy(request->id, answer->id, sizeof(request->id));
    else if (log_enabled(LOG_LEVEL_INFO))
        trace_make_id(request->id);
    state->answer = answer->answer;
    state->head_bytes = answer->head_length;
    state->received_ns = state->started_ns;
}

static uint64_t hash_of(const void *bytes, size_t length)
{
    return zt_xxh3(bytes, length) | 1;
}

static struct kept_answer **place_of(struct response_cache *kept, uint64_t hash)
{
    return &kept->answers[hash / 2 % KEPT_ANSWERS];
}

void response_cache_note(struct response_cache *kept, const struct connection *connection,
                         const void *bytes, size_t length)
{
    kept->noted_on = NULL;
    if (length > KEPT_KEY_MAX)
        return;
    assert(kept->noted_hash == hash_of(bytes, length));
    memcpy(kept->noted, bytes, length);
    kept->noted_length = length;
    kept->noted_on = connection;
}

void response_cache_forget(struct response_cache *kept, const struct connection *connection)
{
    if (kept->noted_on == connection)
        kept->noted_on = NULL;
}

/* --- repeating --- */

/* Returns the answer to a request of these bytes, which may be out of date, or NULL. */
static struct kept_answer *find(struct response_cache *kept, const struct connection *connection,
                                const void *bytes, size_t length)
{
    struct kept_answer *answer;

    kept->noted_on = NULL;
    if (length > KEPT_KEY_MAX)
        return NULL;
    kept->noted_hash = hash_of(bytes, length);
    answer = *place_of(kept, kept->noted_hash);
    return answer != NULL && answer->hash == kept->noted_hash &&
                   answer->is_of_s3 == connection->is_of_s3 && answer->key_length == length &&
                   memcmp(answer->key, bytes, length) == 0
               ? answer
               : NULL;
}

/* Returns true if the library would answer now, on a connection that stays open. */
static bool is_ready(const struct connection *connection)
{
    const struct mhd *mhd = connection->mhd;

    return connection->state == CONNECTION_LIBRARY && connection->request == NULL &&
           (connection->tls == NULL || !tls_session_asks_client(connection->tls)) &&
           !connection->is_surplus && !mhd->cutting &&
           !atomic_load_explicit(&mhd->server->draining, memory_order_relaxed);
}

/* Returns true if the answer is still valid for requests that begin now. */
static bool is_up_to_date(struct mhd *mhd, const struct kept_answer *answer)
{
    handler_poll_changes(mhd, clock_ns());
    assert(answer->users > 0);
    return mhd->now_ms < answer->until_ms && answer->changes == changes_count() &&
           answer->lease == loop_lease(mhd->loop);
}

void response_cache_end(struct connection *connection, bool whole)
{
    struct mhd *mhd = connection->mhd;

    assert(request_state(connection->request)->kept != NULL);
    if (whole)
        connections_idle_begin(&mhd->connections, connection, mhd->now_ms);
    connection_end_request(connection, whole ? ENDING_WHOLE : connection_failure(connection));
}

static enum tap_verdict give(struct connection *connection, struct kept_answer *answer)
{
    struct request *request = connection->request;

    assert(answer->text_length >= answer->head_length);
    complete(answer, request);
    bulk_make_way(connection->mhd->bulks, connection->mhd->now_ms);
    request_enter(request_state(request), STAGE_BODY);
    request_enter(request_state(request), STAGE_QUEUED);
    switch (direct_text_send(connection, answer->text, answer->text_length)) {
    case DIRECT_SENT:
        response_cache_end(connection, true);
        return TAP_TAKEN;
    case DIRECT_WAITS:
        return TAP_TAKEN;
    case DIRECT_FAILED:
        break;
    }
    connection->unsent_bytes = 0;
    response_cache_end(connection, false);
    return TAP_END;
}

enum tap_verdict response_cache_answer(struct connection *connection, const void *bytes,
                                       size_t length)
{
    struct mhd *mhd = connection->mhd;
    struct kept_answer *answer = find(&mhd->kept, connection, bytes, length);

    assert(mhd_is_own_thread(mhd) && length > 0);
    if (answer == NULL || !is_ready(connection) || !is_up_to_date(mhd, answer) ||
        connection_begin_request(connection, answer->target) == NULL)
        return TAP_PASS;
    return give(connection, answer);
}

/* --- keeping --- */

/* Returns true if the noted bytes are exactly the request, and the connection stays open after the
 * answer. If clients are asked for certificates, their identity depends on the connection, so such
 * answers are not cached. */
static bool may_repeat(const struct response_cache *kept, struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const char *options = request_header(request, "Connection");

    return kept->noted_on == request->connection && kept->noted_length == state->header_bytes &&
           (request->method == METHOD_GET || request->method == METHOD_HEAD) &&
           (request->connection->tls == NULL ||
            !tls_session_asks_client(request->connection->tls)) &&
           !request->connection->is_surplus && !state->method_malformed && !state->headers_cut &&
           !state->headers_long && !state->headers_hidden && !state->http_1_0 &&
           state->body_length == 0 && (options == NULL || strcasecmp(options, "keep-alive") == 0) &&
           request_header(request, "Expect") == NULL;
}

/* Returns false if the answer is large, had to be gathered or fetched, or has fields for this
 * request only. */
static bool is_keepable(const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct answer *answer = &state->answer;

    return request->reply.lasting && !state->has_problem && answer->status < 400 &&
           !answer->close && answer->segment_count <= 1 &&
           answer->content_length != ANSWER_LENGTH_UNKNOWN &&
           (answer->segment_count == 0 || answer->content_length <= KEPT_BYTES_MAX) &&
           (state->sending == SENDING_BUFFER || state->sending == SENDING_MAPPED) &&
           /* A branch or tag may move without being counted as a change. */
           request->revision.bytes == NULL && state->loaded == NULL && !state->has_own_id &&
           state->trace_id[0] == '\0' && state->timing == NULL &&
           (request->grant == NULL || request->client == request->grant->name);
}

static size_t text_bytes(const struct request_state *state, size_t key_length, size_t text_room)
{
    size_t bytes = key_length + state->target_length + 1 + state->request.names[0].length;

    for (unsigned i = 0; i < state->header_count; i++)
        bytes += (size_t)state->headers[i].name_length + state->headers[i].value_length + 2;
    return bytes + text_room;
}

/* Copies to *at and moves it. */
static const char *put(char **at, const char *text, size_t length)
{
    char *begin = *at;

    if (length > 0)
        memcpy(begin, text, length);
    *at = begin + length;
    return begin;
}

static void put_headers(struct kept_answer *answer, char **at, const struct request_state *state)
{
    answer->header_count = state->header_count;
    for (unsigned i = 0; i < state->header_count; i++) {
        struct header_field field = state->headers[i];

        field.name = put(at, field.name, (size_t)field.name_length + 1);
        field.value = put(at, field.value, (size_t)field.value_length + 1);
        answer->headers[i] = field;
    }
}

/* Writes the answer. Returns false if its bytes cannot be read. */
static bool put_answer(struct kept_answer *answer, char *at, size_t head_room,
                       const struct answer *given)
{
    const struct segment *segment = given->segments;

    assert(given->segment_count <= 1);
    answer->text = at;
    answer->head_length = direct_head_write(given, false, at, head_room);
    answer->text_length = answer->head_length;
    if (given->segment_count == 0)
        return true;
    at += answer->head_length;
    answer->text_length += (size_t)segment->length;
    if (segment->kind == SEGMENT_MEMORY)
        memcpy(at, segment->bytes, (size_t)segment->length);
    return segment->kind == SEGMENT_MEMORY ||
           zt_source_read_at(segment->source, segment->offset, at, (size_t)segment->length, NULL) ==
               ZT_OK;
}

static struct kept_answer *make(const struct response_cache *kept, const struct request *request,
                                uint64_t now_ms)
{
    const struct request_state *state = request_state_const(request);
    const struct zt_text model = request->names[0];
    const size_t headers_size = state->header_count * sizeof(struct header_field);
    const size_t head_room = direct_head_room(&state->answer);
    const size_t text_room =
        head_room + (state->answer.segment_count > 0 ? (size_t)state->answer.content_length : 0);
    struct kept_answer *answer =
        malloc(sizeof(*answer) + headers_size + text_bytes(state, kept->noted_length, text_room));
    char *at;

    if (answer == NULL)
        return NULL;
    *answer = (struct kept_answer){.users = 1,
                                   .changes = state->changes,
                                   .until_ms = now_ms + KEPT_MS,
                                   .hash = kept->noted_hash,
                                   .is_of_s3 = request->connection->is_of_s3,
                                   .method = request->method,
                                   .route = request->route,
                                   .client = request->client,
                                   .answer = state->answer,
                                   .key_length = kept->noted_length};
    answer->answer.segments = NULL;
    answer->answer.fields = NULL;
    answer->answer.field_count = 0;
    memcpy(answer->id, request->id, sizeof(answer->id));
    at = (char *)answer->headers + headers_size;
    put_headers(answer, &at, state);
    answer->key = put(&at, kept->noted, kept->noted_length);
    answer->target = put(&at, state->target, state->target_length + 1);
    answer->model = (struct zt_text){put(&at, model.bytes, model.length), model.length};
    if (!put_answer(answer, at, head_room, &state->answer)) {
        free(answer);
        return NULL;
    }
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
    struct kept_answer **place = place_of(kept, kept->noted_hash);
    uint64_t *asked = &kept->asked[place - kept->answers];
    struct lease *lease = loop_lease(request->connection->mhd->loop);

    /* If the access rights have changed since the request began, it must not be repeated under the
     * new ones, and its client's name may be freed with the old ones. */
    if (!may_repeat(kept, request) || !is_keepable(request) ||
        (lease != NULL && lease->access != request->access))
        return;
    kept->noted_on = NULL;
    drop_an_old_one(kept, now_ms);
    if (*asked != kept->noted_hash) {
        *asked = kept->noted_hash;
        return;
    }
    drop(place);
    *place = make(kept, request, now_ms);
    if (*place == NULL)
        return;
    (*place)->lease = lease != NULL ? lease_use(lease) : NULL;
}

void response_cache_clear(struct response_cache *kept)
{
    for (unsigned i = 0; i < KEPT_ANSWERS; i++)
        drop(&kept->answers[i]);
}
