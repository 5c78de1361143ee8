/* PUT of a model: the body, what is checked at its end, publication, the answer (http-api, section
 * 6.1). */
#include "upload_request.h"

#define TARGET "/v1/models/m"
#define SHA512                                                                             \
    "sha-512=:"                                                                            \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AA==:"

static uint8_t bytes[MODEL_MAX];
static size_t length;
static char digest[80];

static int set_up(void **state)
{
    int failed = uploads_set_up(state);

    length = world_model_bytes(*state, true, bytes, sizeof(bytes));
    digest_of(bytes, length, digest);
    return failed;
}

static struct asked put(void)
{
    return with_body(to_ask("PUT", TARGET), bytes, length);
}

static struct asked put_with(const char *name, const char *value)
{
    return with_field(put(), name, value);
}

static struct asked put_chunked(void)
{
    struct asked asked = put();

    asked.chunked = true;
    return asked;
}

/* No upload is known, no descriptor of one is open, and the name is free. */
static void assert_nothing_left(struct world *world, unsigned descriptors)
{
    assert_string_equal(assert_status(world, to_ask("GET", "/v1/uploads"), 200).body,
                        "{\"uploads\":[]}\n");
    assert_descriptors(descriptors);
    assert_exists(world, "m.zt", false);
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, uploads_tear_down)

/* --- success --- */

PREPARED(new_model_is_answered_with_its_place_tag_and_digest)
{
    struct answered answered = assert_status(world, put(), 201);
    struct generation *current = world_find(world, "m");

    assert_non_null(current);
    assert_string_equal(value_of(&answered, "Location"), TARGET);
    assert_string_equal(value_of(&answered, "Repr-Digest"), digest);
    assert_string_equal(value_of(&answered, "ETag"), current->etag);
    assert_int_equal(current->identity.size_bytes, length);
    generation_release(current);
}

PREPARED(location_escapes_the_slashes_of_the_name)
{
    struct answered answered =
        assert_status(world, with_body(to_ask("PUT", "/v1/models/a%2Fb"), bytes, length), 201);

    assert_string_equal(value_of(&answered, "Location"), "/v1/models/a%2Fb");
    assert_exists(world, "a/b.zt", true);
}

PREPARED(second_put_replaces_the_model)
{
    char first[128];
    struct answered answered = assert_status(world, put(), 201);

    strcpy(first, value_of(&answered, "ETag"));
    pause_ms(30);
    answered = assert_status(world, put(), 204);
    assert_string_equal(value_of(&answered, "Location"), TARGET);
    assert_string_not_equal(value_of(&answered, "ETag"), first);
    assert_status(world, put_with("If-Match", value_of(&answered, "ETag")), 204);
}

PREPARED(file_of_another_format_is_replaced_too)
{
    world_write(world, "m.npy", "x", 1);
    assert_status(world, put(), 204);
    assert_exists(world, "m.npy", false);
    assert_exists(world, "m.zt", true);
}

PREPARED(bytes_arrive_whole_however_they_are_cut)
{
    static const size_t pieces[] = {1, 7, 64, MODEL_MAX};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        for (int on_workers = 0; on_workers < 2; on_workers++) {
            struct asked asked = put();
            struct answered answered;

            asked.piece_bytes = pieces[i];
            asked.on_workers = on_workers != 0;
            answered = ask(world, asked);
            assert_in_range(answered.status, 201, 204);
            assert_string_equal(value_of(&answered, "Repr-Digest"), digest);
        }
}

PREPARED(chunked_body_needs_no_length)
{
    assert_status(world, put_chunked(), 201);
}

PREPARED(nothing_is_visible_before_the_last_byte)
{
    struct sending_request sending;

    sending_begin(world, &sending, put());
    sending_until(&sending, length - 1);
    assert_exists(world, "m.zt", false);
    assert_null(world_find(world, "m"));
    assert_non_null(strstr(assert_status(world, to_ask("GET", "/v1/uploads"), 200).body,
                           "\"kind\":\"file\",\"model\":\"m\""));
    sending_until(&sending, length);
    assert_int_equal(sending_end(&sending).status, 201);
    assert_exists(world, "m.zt", true);
}

/* --- bodies that end early, or are too long --- */

PREPARED(cut_body_leaves_nothing)
{
    const size_t ends[] = {0, 1, length / 2, length};
    unsigned before = open_descriptors();

    for (size_t i = 0; i < 2 * sizeof(ends) / sizeof(ends[0]); i++) {
        struct sending_request sending;
        struct asked asked = put();

        asked.on_workers = i % 2 == 1;
        asked.piece_bytes = asked.on_workers ? 16 : 0;
        sending_begin(world, &sending, asked);
        assert_false(sending.is_early);
        sending_until(&sending, ends[i / 2]);
        sending_cut(&sending);
        assert_nothing_left(world, before);
    }
}

PREPARED(chunked_body_past_the_limit_is_refused)
{
    struct asked asked = put_chunked();
    unsigned before = open_descriptors();

    world->config.upload.max_bytes = (int64_t)length - 1;
    asked.piece_bytes = 1;
    assert_fails_after_body(world, asked, 413, "too-large");
    asked.on_workers = true;
    assert_fails_after_body(world, asked, 413, "too-large");
    assert_nothing_left(world, before);
    world->config.upload.max_bytes = (int64_t)length;
    assert_status(world, asked, 201);
}

/* A full disk should not wait for a slow client. While a worker hashes, the next piece tries
 * again. */
PREPARED(stored_bytes_of_a_refused_body_are_removed_while_the_rest_arrives)
{
    unsigned before = open_descriptors();
    struct sending_request sending;
    struct asked asked = put_chunked();
    struct answered answered;

    world->config.upload.max_bytes = 100;
    asked.piece_bytes = 1;
    sending_begin(world, &sending, asked);
    sending_until(&sending, 100);
    assert_true(open_descriptors() > before);
    while (sending.sent + 1 < length && open_descriptors() > before) {
        sending_until(&sending, sending.sent + 1);
        pause_ms(1);
    }
    assert_int_equal(open_descriptors(), before);
    sending_until(&sending, length);
    answered = sending_end(&sending);
    assert_problem(&answered, 413, "too-large");
}

/* --- digests --- */

PREPARED(right_digests_are_accepted)
{
    assert_status(world, put_with("Content-Digest", digest), 201);
    assert_status(world, put_with("Repr-Digest", digest), 204);
}

PREPARED(wrong_digest_of_either_field_is_refused)
{
    static const char *const names[] = {"Content-Digest", "Repr-Digest"};
    static const char *const values[] = {WRONG_DIGEST, SHA512};
    unsigned before = open_descriptors();

    for (size_t i = 0; i < 4; i++)
        assert_fails_after_body(world, put_with(names[i / 2], values[i % 2]), 422,
                                "digest-mismatch");
    assert_nothing_left(world, before);
}

PREPARED(one_wrong_digest_among_right_ones_is_refused)
{
    char both[256];

    snprintf(both, sizeof(both), "%s, %s", digest, SHA512);
    assert_fails_after_body(world, put_with("Repr-Digest", both), 422, "digest-mismatch");
}

PREPARED(digest_stated_in_the_file_is_checked)
{
    uint8_t unsound[MODEL_MAX];
    size_t count = world_model_bytes(world, false, unsound, sizeof(unsound));
    struct answered answered = ask(world, with_body(to_ask("PUT", TARGET), unsound, count));

    assert_problem(&answered, 422, "digest-mismatch");
    assert_non_null(strstr(answered.body, "\"object\":\"b\""));
    assert_non_null(strstr(answered.body, "\"component\":\"data\""));
    assert_non_null(strstr(answered.body, "\"offset\":128"));
    assert_exists(world, "m.zt", false);
}

/* --- bodies that are no models --- */

PREPARED(every_shortened_model_is_invalid_and_leaves_nothing)
{
    unsigned before = open_descriptors();

    for (size_t shorter = 1; shorter < length; shorter += 37)
        assert_fails_after_body(world, with_body(to_ask("PUT", TARGET), bytes, length - shorter),
                                422, "invalid-model");
    assert_nothing_left(world, before);
}

PREPARED(invalid_model_leaves_the_earlier_one)
{
    struct answered answered = assert_status(world, put(), 201);
    char etag[128];
    struct generation *current;

    strcpy(etag, value_of(&answered, "ETag"));
    assert_fails_after_body(world, with_body(to_ask("PUT", TARGET), "no model", 8), 422,
                            "invalid-model");
    current = world_find(world, "m");
    assert_non_null(current);
    assert_string_equal(current->etag, etag);
    generation_release(current);
}

/* --- preconditions at publication --- */

PREPARED(model_that_appears_during_the_upload_fails_if_none_match)
{
    struct sending_request sending;
    struct answered answered;

    sending_begin(world, &sending, put_with("If-None-Match", "*"));
    assert_false(sending.is_early);
    sending_until(&sending, length);
    world_write(world, "m.npy", "x", 1);
    answered = sending_end(&sending);
    assert_problem(&answered, 412, "precondition-failed");
    assert_exists(world, "m.npy", true);
    assert_exists(world, "m.zt", false);
}

PREPARED(model_that_changes_during_the_upload_fails_if_match)
{
    struct sending_request sending;
    struct answered answered = assert_status(world, put(), 201);
    char etag[128];

    strcpy(etag, value_of(&answered, "ETag"));
    sending_begin(world, &sending, put_with("If-Match", etag));
    assert_false(sending.is_early);
    sending_until(&sending, length);
    pause_ms(30);
    assert_status(world, put(), 204);
    answered = sending_end(&sending);
    assert_problem(&answered, 412, "precondition-failed");
}

PREPARED(of_two_that_only_create_one_wins)
{
    struct sending_request first;
    struct sending_request second;
    struct answered answered;

    sending_begin(world, &first, put_with("If-None-Match", "*"));
    sending_begin(world, &second, put_with("If-None-Match", "*"));
    sending_until(&first, length);
    sending_until(&second, length);
    assert_int_equal(sending_end(&second).status, 201);
    answered = sending_end(&first);
    assert_problem(&answered, 412, "precondition-failed");
}
