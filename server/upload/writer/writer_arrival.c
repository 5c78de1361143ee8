/* Handles an arrival on the loop: its files, its position in "data", and its bytes. */
#include "upload/writer/writer_arrival.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/staging.h"

/* Freeing a larger file takes too long on a loop. */
#define SLOW_TO_FREE_BYTES ((uint64_t)64 << 20)

static uint64_t most_bytes(const struct arrival *arrival)
{
    return (uint64_t)config_number(&arrival->session->kept.server->config->upload.max_bytes);
}

/* A bit mask of the states that may follow each state. */
static const unsigned next_states[] = {
    [ARRIVAL_RECEIVING] = 1U << ARRIVAL_FINISHING,
    [ARRIVAL_FINISHING] = 1U << ARRIVAL_DONE,
    [ARRIVAL_DONE] = 0,
};

static void set_state(struct arrival *arrival, enum arrival_state state)
{
    assert(next_states[arrival->state] >> state & 1);
    arrival->state = state;
}

/* --- life --- */

static void give_place_back(struct arrival *arrival)
{
    assert(!arrival->has_place || arrival->data != NULL);
    if (arrival->has_place)
        writer_place_return(arrival->session, arrival->round, arrival->data, &arrival->place);
    arrival->has_place = false;
}

static void free_arrival(void *owner)
{
    struct arrival *arrival = owner;

    give_place_back(arrival);
    staged_file_close(arrival->data);
    staged_file_close(arrival->spool);
    staged_file_close(arrival->packed);
    zt_encoder_close(arrival->encoder);
    byte_digests_free(&arrival->decoded);
    byte_digests_free(&arrival->body);
    byte_digests_free(&arrival->stored);
    body_follower_destroy(&arrival->follower);
    kept_upload_release(arrival->session);
    free(arrival->names);
    free(arrival);
}

void arrival_release(void *thing)
{
    struct arrival *arrival = thing;

    if ((arrival->spool != NULL || arrival->has_place) &&
        body_follower_received(&arrival->follower) > SLOW_TO_FREE_BYTES)
        body_follower_release_on_worker(&arrival->follower);
    else
        body_follower_release(&arrival->follower);
}

/* --- sinks --- */

static enum zt_status take_packed(void *context, const void *bytes, size_t length,
                                  struct zt_error *error)
{
    struct arrival *arrival = context;
    enum zt_status status;

    assert(arrival->packed != NULL);
    byte_digests_update(&arrival->stored, bytes, length);
    status = staged_file_write_at(arrival->packed, arrival->packed_length, bytes, length, error);
    if (status == ZT_OK)
        arrival->packed_length += length;
    return status;
}

static enum zt_status encode_body(void *context, const void *bytes, size_t length,
                                  struct zt_error *error)
{
    struct arrival *arrival = context;

    assert(!arrival->terms.without_body);
    byte_digests_update(&arrival->decoded, bytes, length);
    return zt_encoder_append(arrival->encoder, bytes, length, error);
}

/* --- beginning --- */

static bool copy_names(struct arrival *arrival)
{
    struct arrival_terms *terms = &arrival->terms;

    assert(arrival->names == NULL);
    arrival->names = malloc(terms->object.length + terms->component.length + 1);
    if (arrival->names == NULL)
        return failure_no_memory(&arrival->failure, "a component");
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
           failure_no_memory(&arrival->failure, "a component");
}

bool arrival_take_place(struct arrival *arrival, uint64_t length)
{
    struct writer_session *session = arrival->session;
    bool fits;

    assert(!arrival->has_place);
    pthread_mutex_lock(&session->lock);
    fits = writer_place_take(&session->places, length, most_bytes(arrival), &arrival->place.offset);
    pthread_mutex_unlock(&session->lock);
    if (!fits)
        return failure_refuse(&arrival->failure, PROBLEM_TOO_LARGE,
                              "the file would be larger than this server accepts");
    assert(arrival->place.offset % session->places.alignment == 0);
    arrival->place.length = length;
    arrival->has_place = true;
    return true;
}

static bool open_data(struct arrival *arrival)
{
    struct store *store = arrival->session->kept.server->store;
    struct zt_error error;
    const enum zt_status status = staging_folder_open(
        store->staging, arrival->session->kept.entry.id, WRITER_DATA, &arrival->data, &error);

    /* A commit may have published the file since the request was accepted. */
    if (status == ZT_NOT_FOUND)
        return failure_refuse(&arrival->failure, PROBLEM_CONFLICT,
                              "the upload was committed or removed meanwhile");
    return status == ZT_OK || failure_of_store(&arrival->failure, &error);
}

/* Fails if a known length does not fit on the disk. */
static bool make_file(struct arrival *arrival, uint64_t expected_bytes,
                      struct staged_file **out_file)
{
    struct store *store = arrival->session->kept.server->store;
    struct zt_error error;

    return staging_create(store->staging, expected_bytes, out_file, &error) == ZT_OK ||
           failure_of_store(&arrival->failure, &error);
}

/* For bytes that go to "data", which exists already. */
static bool take_space(struct arrival *arrival, uint64_t expected_bytes)
{
    struct zt_error error;

    assert(arrival->data != NULL);
    return staged_file_take_space(arrival->data, expected_bytes, &error) == ZT_OK ||
           failure_of_store(&arrival->failure, &error);
}

static bool open_encoder(struct arrival *arrival)
{
    const struct zt_sink sink = {take_packed, arrival};
    const struct zt_encoder_options options = {
        .encoding = zt_target_places(arrival->session->target).encoding,
        .level = arrival->terms.level,
        .bounds_memory = true};
    struct zt_error error;

    assert(arrival->encoder == NULL && arrival->packed == NULL);
    if (!arrival->terms.compress)
        return true;
    if (!make_file(arrival, UINT64_MAX, &arrival->packed))
        return false;
    return zt_encoder_open(&options, &sink, &arrival->encoder, &error) == ZT_OK ||
           failure_set(&arrival->failure, PROBLEM_INTERNAL, &error);
}

/* The length of raw bytes is known from their shape, even if the body is chunked. */
static bool open_body(struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;

    assert(arrival->data != NULL && arrival->spool == NULL && !arrival->has_place);
    if (terms->without_body)
        return take_space(arrival, terms->decoded_length);
    if (!terms->body_is_zstd && !terms->compress)
        return take_space(arrival, terms->decoded_length) &&
               arrival_take_place(arrival, terms->decoded_length);
    if (terms->as_sent && terms->body_length != UINT64_MAX)
        return take_space(arrival, terms->body_length) &&
               arrival_take_place(arrival, terms->body_length);
    return make_file(arrival, terms->body_length, &arrival->spool);
}

static void start_follower(struct arrival *arrival)
{
    struct body_follower *follower = &arrival->follower;

    assert(arrival->spool != NULL || arrival->has_place || arrival->terms.without_body);
    follower->client = arrival->terms.client;
    follower->workers = arrival->session->kept.server->workers;
    follower->stored = arrival->spool != NULL ? arrival->spool : arrival->data;
    follower->base = arrival->spool != NULL ? 0 : arrival->place.offset;
    if (arrival->terms.body_is_zstd)
        follower->sink = (struct zt_sink){byte_digests_take, &arrival->body};
    else if (arrival->encoder == NULL)
        follower->sink = (struct zt_sink){byte_digests_take, &arrival->decoded};
    else
        follower->sink = (struct zt_sink){encode_body, arrival};
}

struct arrival *arrival_begin(struct writer_session *session, uint64_t round,
                              const struct arrival_terms *terms, struct failure *failure)
{
    struct arrival *arrival = calloc(1, sizeof(*arrival));

    assert(!failure->is_set);
    if (arrival == NULL) {
        failure_no_memory(failure, "a component");
        return NULL;
    }
    body_follower_init(&arrival->follower, arrival, free_arrival);
    arrival->session = writer_session_hold(session);
    arrival->round = round;
    arrival->terms = *terms;
    if (copy_names(arrival) && start_digests(arrival) && open_data(arrival) &&
        open_encoder(arrival) && open_body(arrival)) {
        start_follower(arrival);
        return arrival;
    }
    *failure = arrival->failure;
    body_follower_release(&arrival->follower);
    return NULL;
}

/* --- the body --- */

static uint64_t most_of_body(const struct arrival *arrival)
{
    return arrival->terms.body_is_zstd ? most_bytes(arrival) : arrival->terms.decoded_length;
}

/* After the end of the round a commit may already be reading the file. */
bool arrival_write_in_place(struct arrival *arrival, uint64_t at, const void *bytes, size_t length)
{
    struct zt_error error;
    enum zt_status status;

    assert(arrival->has_place);
    if (at > arrival->place.length || length > arrival->place.length - at)
        return failure_refuse(&arrival->failure, PROBLEM_SIZE_MISMATCH,
                              "more bytes than shape and type require");
    if (!writer_write_begin(arrival->session, arrival->round))
        return writer_round_fail(&arrival->failure);
    status = staged_file_write_at(arrival->data, arrival->place.offset + at, bytes, length, &error);
    writer_write_end(arrival->session);
    return status == ZT_OK || failure_of_store(&arrival->failure, &error);
}

static bool write_body(struct arrival *arrival, uint64_t at, const void *bytes, size_t length)
{
    struct zt_error error;

    assert(!arrival->terms.without_body);
    if (arrival->spool == NULL)
        return arrival_write_in_place(arrival, at, bytes, length);
    return staged_file_write_at(arrival->spool, at, bytes, length, &error) == ZT_OK ||
           failure_of_store(&arrival->failure, &error);
}

static bool refuse_more(struct arrival *arrival)
{
    if (arrival->terms.body_is_zstd)
        return failure_refuse(&arrival->failure, PROBLEM_TOO_LARGE,
                              "the body is larger than this server accepts");
    return failure_refuse(&arrival->failure, PROBLEM_SIZE_MISMATCH,
                          "the body has more bytes than shape and type require");
}

void arrival_receive(struct arrival *arrival, const struct body_piece *piece)
{
    const uint64_t received = body_follower_received(&arrival->follower);
    const uint64_t most = most_of_body(arrival);

    assert(arrival->state == ARRIVAL_RECEIVING);
    if (arrival->failure.is_set)
        return;
    kept_upload_touch(&arrival->session->kept);
    if (received > most || piece->length > most - received)
        (void)refuse_more(arrival);
    else if (write_body(arrival, received, piece->bytes, piece->length))
        body_follower_take(&arrival->follower, piece);
}

void arrival_end_body(struct arrival *arrival)
{
    assert(!arrival->failure.is_set);
    set_state(arrival, ARRIVAL_FINISHING);
}
