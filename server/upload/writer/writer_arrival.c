/* The loop's side of an arrival: its files, its place, its bytes. */
#include "upload/writer/writer_arrival.h"

#include <stdlib.h>
#include <string.h>

/* Freeing the blocks of a file takes as long as it is large. */
#define SLOW_TO_FREE_BYTES ((uint64_t)64 << 20)

static const struct store_ops *ops_of(const struct arrival *arrival)
{
    return arrival->session->server->store->ops;
}

static uint64_t most_bytes(const struct arrival *arrival)
{
    return (uint64_t)arrival->session->server->config->upload.max_bytes;
}

/* --- failures --- */

bool arrival_fail(struct arrival *arrival, enum problem problem, const struct zt_error *error)
{
    if (!arrival->has_failed)
        writer_fail(&arrival->failure, problem, error);
    arrival->has_failed = true;
    return false;
}

bool arrival_fail_store(struct arrival *arrival, const struct zt_error *error)
{
    return arrival_fail(arrival, problem_of_write(error), error);
}

static bool refuse(struct arrival *arrival, enum problem problem, const char *message)
{
    struct zt_error error;

    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return arrival_fail(arrival, problem, &error);
}

/* --- life --- */

static void give_place_back(struct arrival *arrival)
{
    if (arrival->has_place)
        writer_place_return(arrival->session, arrival->round, arrival->data, &arrival->place);
}

static void free_arrival(struct arrival *arrival)
{
    const struct store_ops *ops = ops_of(arrival);

    give_place_back(arrival);
    ops->abandon(arrival->data);
    ops->abandon(arrival->spool);
    ops->abandon(arrival->packed);
    zt_encoder_close(arrival->encoder);
    byte_digests_free(&arrival->decoded);
    byte_digests_free(&arrival->body);
    byte_digests_free(&arrival->stored);
    if (arrival->follows)
        body_follower_free(&arrival->follower);
    writer_session_release(arrival->session);
    free(arrival->names);
    free(arrival);
}

static void hold(void *owner)
{
    struct arrival *arrival = owner;

    atomic_fetch_add(&arrival->references, 1);
}

static void release(void *owner)
{
    struct arrival *arrival = owner;

    if (atomic_fetch_sub(&arrival->references, 1) == 1)
        free_arrival(arrival);
}

static void run_release(struct job *job)
{
    release((struct arrival *)((char *)job - offsetof(struct arrival, follower.job)));
}

/* A worker frees what takes long; the job is free to be used when nobody else has a reference. */
void arrival_release(void *thing)
{
    struct arrival *arrival = thing;
    bool is_last = atomic_load(&arrival->references) == 1;

    if (is_last && (arrival->spool != NULL || arrival->has_place) &&
        body_follower_received(&arrival->follower) > SLOW_TO_FREE_BYTES) {
        arrival->follower.job.run = run_release;
        workers_submit(arrival->session->server->workers, &arrival->follower.job);
    } else {
        release(arrival);
    }
}

/* --- sinks --- */

static enum zt_status take_packed(void *context, const void *bytes, size_t length,
                                  struct zt_error *error)
{
    struct arrival *arrival = context;
    enum zt_status status;

    byte_digests_update(&arrival->stored, bytes, length);
    status =
        ops_of(arrival)->write_at(arrival->packed, arrival->packed_length, bytes, length, error);
    if (status == ZT_OK)
        arrival->packed_length += length;
    return status;
}

/* The body as it was sent. */
static enum zt_status take_body(void *context, const void *bytes, size_t length,
                                struct zt_error *error)
{
    struct arrival *arrival = context;

    if (arrival->terms.body_is_zstd) {
        byte_digests_update(&arrival->body, bytes, length);
        return ZT_OK;
    }
    byte_digests_update(&arrival->decoded, bytes, length);
    return arrival->encoder != NULL ? zt_encoder_append(arrival->encoder, bytes, length, error)
                                    : ZT_OK;
}

/* --- beginning --- */

static bool no_memory(struct arrival *arrival)
{
    struct zt_error error;

    zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a component");
    return arrival_fail(arrival, PROBLEM_INTERNAL, &error);
}

static bool copy_names(struct arrival *arrival)
{
    struct arrival_terms *terms = &arrival->terms;

    arrival->names = malloc(terms->object.length + terms->component.length + 1);
    if (arrival->names == NULL)
        return no_memory(arrival);
    memcpy(arrival->names, terms->object.bytes, terms->object.length);
    memcpy(arrival->names + terms->object.length, terms->component.bytes, terms->component.length);
    terms->object.bytes = arrival->names;
    terms->component.bytes = arrival->names + terms->object.length;
    return true;
}

static bool start_digests(struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;
    bool with_sha512 = terms->content_digest.has_sha512 || terms->repr_digest.has_sha512;
    bool with_xxh3 = arrival->session->target == ZT_TARGET_ZT2;

    return (byte_digests_init(&arrival->decoded, with_sha512, with_xxh3) &&
            (!terms->body_is_zstd || byte_digests_init(&arrival->body, with_sha512, false)) &&
            (!terms->compress || byte_digests_init(&arrival->stored, false, false))) ||
           no_memory(arrival);
}

bool arrival_take_place(struct arrival *arrival, uint64_t length)
{
    struct writer_session *session = arrival->session;
    bool fits;

    pthread_mutex_lock(&session->lock);
    fits = writer_place_take(&session->places, length, most_bytes(arrival), &arrival->place.offset);
    pthread_mutex_unlock(&session->lock);
    if (!fits)
        return refuse(arrival, PROBLEM_TOO_LARGE,
                      "the file would be larger than this server takes");
    arrival->place.length = length;
    arrival->has_place = true;
    return true;
}

static bool open_data(struct arrival *arrival)
{
    struct store *store = arrival->session->server->store;
    struct zt_error error;

    return store->ops->kept_open(store, arrival->session->entry.id, WRITER_DATA, &arrival->data,
                                 &error) == ZT_OK ||
           arrival_fail_store(arrival, &error);
}

/* Also asks whether a length that is known fits: an upload's own file is grown, not made. */
static bool make_file(struct arrival *arrival, uint64_t expected_bytes,
                      struct stored_upload **out_file)
{
    struct store *store = arrival->session->server->store;
    struct zt_error error;

    return store->ops->create(store, expected_bytes, out_file, &error) == ZT_OK ||
           arrival_fail_store(arrival, &error);
}

static bool check_space(struct arrival *arrival, uint64_t expected_bytes)
{
    struct stored_upload *probe;

    if (!make_file(arrival, expected_bytes, &probe))
        return false;
    ops_of(arrival)->abandon(probe);
    return true;
}

static bool open_encoder(struct arrival *arrival)
{
    const struct zt_sink sink = {take_packed, arrival};
    const struct zt_encoder_options options = {
        .encoding = zt_target_places(arrival->session->target).encoding,
        .level = arrival->terms.level,
        .bounds_memory = true};
    struct zt_error error;

    if (!arrival->terms.compress)
        return true;
    if (!make_file(arrival, UINT64_MAX, &arrival->packed))
        return false;
    return zt_encoder_open(&options, &sink, &arrival->encoder, &error) == ZT_OK ||
           arrival_fail(arrival, PROBLEM_INTERNAL, &error);
}

/* Raw bytes are as long as their shape says, chunked or not. */
static bool open_body(struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;

    if (terms->without_body)
        return check_space(arrival, terms->decoded_length);
    if (!terms->body_is_zstd && !terms->compress)
        return check_space(arrival, terms->decoded_length) &&
               arrival_take_place(arrival, terms->decoded_length);
    if (terms->as_sent && terms->body_length != UINT64_MAX)
        return check_space(arrival, terms->body_length) &&
               arrival_take_place(arrival, terms->body_length);
    return make_file(arrival, terms->body_length, &arrival->spool);
}

static bool start_follower(struct arrival *arrival)
{
    struct body_follower *follower = &arrival->follower;

    follower->server = arrival->session->server;
    follower->stored = arrival->spool != NULL ? arrival->spool : arrival->data;
    follower->base = arrival->spool != NULL ? 0 : arrival->place.offset;
    follower->sink = (struct zt_sink){take_body, arrival};
    follower->hold = hold;
    follower->release = release;
    follower->owner = arrival;
    arrival->follows = true;
    return body_follower_init(follower) || no_memory(arrival);
}

struct arrival *arrival_begin(struct writer_session *session, uint64_t round,
                              const struct arrival_terms *terms, struct writer_failure *failure)
{
    struct arrival *arrival = calloc(1, sizeof(*arrival));

    if (arrival == NULL) {
        writer_refuse(failure, PROBLEM_INTERNAL, "no memory for a component");
        return NULL;
    }
    atomic_init(&arrival->references, 1);
    arrival->session = writer_session_hold(session);
    arrival->round = round;
    arrival->terms = *terms;
    if (copy_names(arrival) && start_digests(arrival) && open_data(arrival) &&
        open_encoder(arrival) && open_body(arrival) && start_follower(arrival))
        return arrival;
    *failure = arrival->failure;
    free_arrival(arrival);
    return NULL;
}

/* --- the body --- */

static uint64_t most_of_body(const struct arrival *arrival)
{
    return arrival->terms.body_is_zstd ? most_bytes(arrival) : arrival->terms.decoded_length;
}

/* Into a place only as long as its round goes on: a commit may be reading the file already. */
static bool write_in_place(struct arrival *arrival, uint64_t at, const void *bytes, size_t length)
{
    struct zt_error error;
    enum zt_status status;

    if (!writer_write_begin(arrival->session, arrival->round))
        return refuse(arrival, PROBLEM_CONFLICT, "the upload was committed, or ended, meanwhile");
    status =
        ops_of(arrival)->write_at(arrival->data, arrival->place.offset + at, bytes, length, &error);
    writer_write_end(arrival->session);
    return status == ZT_OK || arrival_fail_store(arrival, &error);
}

static bool write_body(struct arrival *arrival, uint64_t at, const void *bytes, size_t length)
{
    struct zt_error error;

    if (arrival->spool == NULL)
        return write_in_place(arrival, at, bytes, length);
    return ops_of(arrival)->write_at(arrival->spool, at, bytes, length, &error) == ZT_OK ||
           arrival_fail_store(arrival, &error);
}

/* Whether it is written; what follows a failure is dropped. */
static bool take_piece(struct arrival *arrival, const void *bytes, size_t length)
{
    uint64_t received = body_follower_received(&arrival->follower);
    uint64_t most = most_of_body(arrival);

    if (arrival->has_failed)
        return false;
    writer_session_touch(arrival->session);
    if (received <= most && length <= most - received)
        return write_body(arrival, received, bytes, length);
    return refuse(arrival, arrival->terms.body_is_zstd ? PROBLEM_TOO_LARGE : PROBLEM_SIZE_MISMATCH,
                  arrival->terms.body_is_zstd ? "the body is larger than this server takes"
                                              : "the body has more bytes than shape and type want");
}

void arrival_receive(struct arrival *arrival, const void *bytes, size_t length)
{
    if (take_piece(arrival, bytes, length))
        body_follower_advance(&arrival->follower, length);
}

void arrival_store(struct arrival *arrival, const void *bytes, size_t length)
{
    if (take_piece(arrival, bytes, length))
        body_follower_count(&arrival->follower, length);
}
