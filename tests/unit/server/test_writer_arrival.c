/* Components on their way into a streaming writer's upload: how they are stored, what is refused,
 * and what a refusal leaves. */
#include "upload_world.h"

#include "store/staging.h"
#include "upload/writer/writer_arrival.h"

#define ID           "0123456789abcdef0123456789abcdef"
#define LENGTH       ((size_t)300000)
#define PIECE_LENGTH ((size_t)10000)

static uint8_t bytes[LENGTH];

static struct arrival_terms terms_of(const char *object, size_t length)
{
    return (struct arrival_terms){
        .object = zt_text_from(object),
        .component = zt_text_from("data"),
        .shape = {.stated = true, .rank = 1, .extents = {length}},
        .dtype = ZT_U8,
        .decoded_length = length,
        .body_length = length,
    };
}

static struct writer_session *begin(struct world *world, enum zt_target target)
{
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)(i >> 8);
    return writer_begin(world, ID, target);
}

static void send_piece(struct arrival *arrival, const uint8_t *piece_bytes, size_t length)
{
    const struct body_piece piece = {.bytes = piece_bytes, .length = length, .on_loop = true};

    arrival_receive(arrival, &piece);
}

/* Sends a body in pieces and finishes. Returns whether it was acknowledged. */
static bool send_body(struct writer_session *session, const struct arrival_terms *terms,
                      const uint8_t *body, size_t length, struct failure *out_failure)
{
    struct arrival *arrival;
    uint64_t round;

    *out_failure = (struct failure){.is_set = false};
    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    arrival = arrival_begin(session, round, terms, out_failure);
    if (arrival == NULL)
        return false;
    for (size_t at = 0; at < length; at += PIECE_LENGTH)
        send_piece(arrival, body + at, length - at < PIECE_LENGTH ? length - at : PIECE_LENGTH);
    if (!arrival->failure.is_set) {
        arrival_end_body(arrival);
        arrival_finish(arrival);
    }
    *out_failure = arrival->failure;
    arrival_release(arrival);
    return !out_failure->is_set;
}

static const struct writer_component *put(struct writer_session *session, const char *object,
                                          size_t length)
{
    const struct arrival_terms terms = terms_of(object, length);
    struct failure failure;

    assert_true(send_body(session, &terms, bytes, length, &failure));
    return writer_object_find(writer_contents_find(&session->contents, zt_text_from(object)),
                              zt_text_from("data"));
}

static void assert_refused(struct writer_session *session, const struct arrival_terms *terms,
                           size_t length, enum problem problem)
{
    struct failure failure;

    assert_false(send_body(session, terms, bytes, length, &failure));
    assert_int_equal(failure.problem, problem);
}

/* What "data" holds of a component; the caller's. */
static uint8_t *stored_bytes(struct world *world, const struct writer_component *component)
{
    uint8_t *stored = malloc((size_t)component->length + 1);
    struct staged_file *data;
    struct zt_source *source;
    struct zt_error error;

    assert_non_null(stored);
    assert_ok(staging_folder_open(world->server.store->staging, ID, WRITER_DATA, &data, &error));
    assert_ok(staged_file_read_back(data, &source, &error));
    assert_ok(
        zt_source_read_at(source, component->offset, stored, (size_t)component->length, &error));
    staged_file_close(data);
    return stored;
}

WITH_UPLOADS(raw_component_is_at_its_place)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    const struct writer_component *component = put(session, "w", LENGTH);
    uint8_t *stored = stored_bytes(world, component);

    assert_int_equal(component->offset % 64, 0);
    assert_int_equal(component->length, LENGTH);
    assert_false(component->compressed);
    assert_memory_equal(stored, bytes, LENGTH);
    assert_memory_equal(component->sha256, component->stated, 32);
    assert_int_equal(atomic_load(&session->kept.entry.received), LENGTH);
    free(stored);
    kept_upload_release(session);
}

WITH_UPLOADS(empty_component_takes_no_place)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT2);
    const struct writer_component *component = put(session, "w", 0);
    uint64_t end = session->places.end;

    assert_int_equal(component->length, 0);
    put(session, "x", 0);
    assert_int_equal(session->places.end, end);
    kept_upload_release(session);
}

WITH_UPLOADS(body_of_another_length_is_a_size_mismatch)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    const struct arrival_terms terms = terms_of("w", LENGTH - 5);
    uint64_t first = put(session, "first", LENGTH - 5)->offset;
    uint64_t end = session->places.end;
    const struct writer_component *component;

    assert_refused(session, &terms, LENGTH, PROBLEM_SIZE_MISMATCH);
    assert_refused(session, &terms, LENGTH - 6, PROBLEM_SIZE_MISMATCH);
    assert_null(writer_contents_find(&session->contents, zt_text_from("w")));
    /* The place was given back. */
    component = put(session, "w", LENGTH - 5);
    assert_int_equal(component->offset, end);
    assert_int_not_equal(component->offset, first);
    kept_upload_release(session);
}

WITH_UPLOADS(wrong_digest_keeps_the_earlier_component)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    struct arrival_terms terms = terms_of("w", 100);

    put(session, "w", 50);
    terms.content_digest.has_sha256 = true;
    assert_refused(session, &terms, 100, PROBLEM_DIGEST_MISMATCH);
    terms.content_digest.has_sha256 = false;
    terms.repr_digest.has_sha512 = true;
    assert_refused(session, &terms, 100, PROBLEM_DIGEST_MISMATCH);
    terms.repr_digest.has_sha512 = false;
    terms.has_wanted = true;
    assert_refused(session, &terms, 100, PROBLEM_DIGEST_MISMATCH);
    assert_int_equal(
        writer_contents_find(&session->contents, zt_text_from("w"))->components->length, 50);
    kept_upload_release(session);
}

WITH_UPLOADS(replaced_component_gives_its_place_back)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    uint64_t first = put(session, "w", 1000)->offset;

    put(session, "w", 500);
    assert_int_equal(atomic_load(&session->kept.entry.received), 500);
    assert_int_equal(put(session, "x", 1000)->offset, first);
    kept_upload_release(session);
}

WITH_UPLOADS(compressed_component_can_be_asked_for_by_its_digest)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    struct arrival_terms terms = terms_of("w", LENGTH);
    const struct writer_component *component;
    struct failure failure;
    uint8_t *stored;

    terms.compress = true;
    assert_true(send_body(session, &terms, bytes, LENGTH, &failure));
    component = writer_contents_find(&session->contents, zt_text_from("w"))->components;
    assert_true(component->compressed);
    assert_in_range(component->length, 1, LENGTH / 4);
    assert_int_equal(component->decoded_length, LENGTH);
    assert_memory_not_equal(component->sha256, component->stated, 32);
    terms = terms_of("copy", LENGTH);
    terms.without_body = true;
    terms.has_wanted = true;
    memcpy(terms.wanted_sha256, component->sha256, 32);
    assert_true(send_body(session, &terms, NULL, 0, &failure));
    component = writer_contents_find(&session->contents, zt_text_from("copy"))->components;
    assert_false(component->compressed);
    stored = stored_bytes(world, component);
    assert_memory_equal(stored, bytes, LENGTH);
    free(stored);
    terms = terms_of("shorter", LENGTH - 1);
    terms.without_body = true;
    terms.has_wanted = true;
    memcpy(terms.wanted_sha256, component->sha256, 32);
    assert_false(send_body(session, &terms, NULL, 0, &failure));
    assert_int_equal(failure.problem, PROBLEM_SIZE_MISMATCH);
    kept_upload_release(session);
}

WITH_UPLOADS(zstd_body_is_stored_as_it_is_or_decoded)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    struct arrival_terms terms = terms_of("w", LENGTH);
    const struct writer_component *component;
    struct failure failure;
    uint8_t *frame;
    size_t frame_length;
    uint8_t *stored;

    terms.compress = true;
    assert_true(send_body(session, &terms, bytes, LENGTH, &failure));
    component = writer_contents_find(&session->contents, zt_text_from("w"))->components;
    frame = stored_bytes(world, component);
    frame_length = (size_t)component->length;
    terms = terms_of("as-sent", LENGTH);
    terms.body_is_zstd = true;
    terms.as_sent = true;
    terms.body_length = frame_length;
    assert_true(send_body(session, &terms, frame, frame_length, &failure));
    component = writer_contents_find(&session->contents, zt_text_from("as-sent"))->components;
    assert_true(component->compressed);
    stored = stored_bytes(world, component);
    assert_memory_equal(stored, frame, frame_length);
    free(stored);
    terms = terms_of("raw", LENGTH);
    terms.body_is_zstd = true;
    terms.body_length = UINT64_MAX;
    assert_true(send_body(session, &terms, frame, frame_length, &failure));
    component = writer_contents_find(&session->contents, zt_text_from("raw"))->components;
    assert_false(component->compressed);
    stored = stored_bytes(world, component);
    assert_memory_equal(stored, bytes, LENGTH);
    free(stored);
    terms = terms_of("shorter", LENGTH - 7);
    terms.body_is_zstd = true;
    terms.body_length = UINT64_MAX;
    assert_false(send_body(session, &terms, frame, frame_length, &failure));
    assert_int_equal(failure.problem, PROBLEM_SIZE_MISMATCH);
    free(frame);
    kept_upload_release(session);
}

WITH_UPLOADS(body_of_a_round_that_is_over_is_a_conflict)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    const struct arrival_terms terms = terms_of("w", 100);
    struct failure failure = {.is_set = false};
    enum writer_state before;
    struct arrival *arrival;
    uint64_t round;

    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    arrival = arrival_begin(session, round, &terms, &failure);
    assert_non_null(arrival);
    send_piece(arrival, bytes, 50);
    assert_true(writer_round_end(session, WRITER_COMMITTING, &before));
    send_piece(arrival, bytes + 50, 50);
    assert_true(arrival->failure.is_set);
    assert_int_equal(arrival->failure.problem, PROBLEM_CONFLICT);
    arrival_release(arrival);
    writer_round_reopen(session);
    assert_null(writer_contents_find(&session->contents, zt_text_from("w")));
    kept_upload_release(session);
}

WITH_UPLOADS(whole_body_of_a_round_that_is_over_is_not_acknowledged)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    const struct arrival_terms terms = terms_of("w", 100);
    struct failure failure = {.is_set = false};
    enum writer_state before;
    struct arrival *arrival;
    uint64_t round;

    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    arrival = arrival_begin(session, round, &terms, &failure);
    assert_non_null(arrival);
    send_piece(arrival, bytes, 100);
    arrival_end_body(arrival);
    assert_true(writer_round_end(session, WRITER_DROPPED, &before));
    arrival_finish(arrival);
    assert_int_equal(arrival->failure.problem, PROBLEM_CONFLICT);
    arrival_release(arrival);
    assert_null(writer_contents_find(&session->contents, zt_text_from("w")));
    kept_upload_release(session);
}

WITH_UPLOADS(file_is_bounded)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    const struct arrival_terms terms = terms_of("x", 900);

    world->config.upload.max_bytes = 1000;
    put(session, "w", 100);
    assert_refused(session, &terms, 900, PROBLEM_TOO_LARGE);
    kept_upload_release(session);
}

/* Its length is not known before it ends, unlike that of raw bytes. */
WITH_UPLOADS(zstd_body_is_bounded_to_the_byte)
{
    struct writer_session *session = begin(world, ZT_TARGET_ZT1);
    struct arrival_terms terms = terms_of("w", 100);
    struct failure failure;

    terms.body_is_zstd = true;
    terms.body_length = UINT64_MAX;
    world->config.upload.max_bytes = 2 * PIECE_LENGTH - 1;
    assert_refused(session, &terms, 2 * PIECE_LENGTH, PROBLEM_TOO_LARGE);
    world->config.upload.max_bytes = 2 * PIECE_LENGTH;
    assert_false(send_body(session, &terms, bytes, 2 * PIECE_LENGTH, &failure));
    assert_int_not_equal(failure.problem, PROBLEM_TOO_LARGE);
    kept_upload_release(session);
}
