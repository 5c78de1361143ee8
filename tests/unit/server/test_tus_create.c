/* POST /v1/resumable: what is refused, and what a creation makes (http-api, section 6.3). */
#include "tus_request.h"

#define TARGET "/v1/resumable"

static struct asked create_named(const char *metadata)
{
    return with_field(with_field(tus_ask("POST", TARGET), "Upload-Length", "10"), "Upload-Metadata",
                      metadata);
}

/* --- refusals --- */

/* Each request has one fault fewer than the one before it. */
WITH_TUS(refusals_come_in_the_order_of_the_contract)
{
    struct asked asked = with_field(to_ask("POST", TARGET), "If-Match", "*");

    world->config.upload.max_bytes = 9;
    asked = with_field(asked, "Repr-Digest", "sha-256=x");
    world->config.writable = false;
    assert_refused(world, asked, 403, "read-only");
    world->config.writable = true;
    assert_refused(world, asked, 412, "precondition-failed");
    asked = with_field(asked, "Tus-Resumable", "1.0.0");
    assert_refused(world, asked, 400, "invalid-request");
    asked = with_field(asked, "Upload-Metadata", TUS_METADATA);
    assert_refused(world, asked, 400, "invalid-request");
    asked = with_field(asked, "Upload-Length", "10");
    assert_refused(world, asked, 400, "invalid-request");
    asked.fields[3] = WRONG_DIGEST;
    world_wait_loaded(world);
    assert_refused(world, asked, 412, "precondition-failed");
    asked.fields[0] = "If-None-Match";
    assert_refused(world, asked, 413, "too-large");
    world->config.upload.max_bytes = 10;
    assert_status(world, asked, 201);
}

WITH_TUS(other_versions_are_refused_with_the_one_spoken)
{
    struct answered answered =
        ask(world, with_field(with_field(to_ask("POST", TARGET), "Tus-Resumable", "0.2.2"),
                              "Upload-Length", "10"));

    assert_problem(&answered, 412, "precondition-failed");
    assert_string_equal(value_of(&answered, "Tus-Version"), "1.0.0");
}

WITH_TUS(metadata_names_the_model)
{
    assert_refused(world, create_named("name bQ=="), 400, "invalid-request");
    /* ".m", and "m m.zt" */
    assert_refused(world, create_named("filename Lm0="), 400, "invalid-name");
    assert_refused(world, create_named("filename bSBtLnp0"), 400, "invalid-name");
    assert_refused(world, create_named("model"), 400, "invalid-name");
    assert_refused(world, create_named("model !"), 400, "invalid-request");
    assert_refused(world, create_named("model bQ==,model bQ=="), 400, "invalid-request");
    /* "..", "a//b" */
    assert_refused(world, create_named("model Li4="), 400, "invalid-name");
    assert_refused(world, create_named("model YS8vYg=="), 400, "invalid-name");
    assert_status(world, create_named("filename eA==,model bQ=="), 201);
    assert_status(world, create_named("filename bQ=="), 201);
}

WITH_TUS(length_is_a_number_of_bytes)
{
    static const char *const lengths[] = {"", "-1", "+1", "1.5", "0x10", "99999999999999999999"};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        assert_refused(world, tus_create(lengths[i]), 400, "invalid-request");
}

WITH_TUS(lengths_are_stated_once_and_concatenations_well_formed)
{
    struct asked later = with_field(tus_ask("POST", TARGET), "Upload-Metadata", TUS_METADATA);

    assert_refused(world, with_field(tus_create("10"), "Upload-Defer-Length", "1"), 400,
                   "invalid-request");
    assert_refused(world, with_field(later, "Upload-Defer-Length", "0"), 400, "invalid-request");
    assert_refused(world, with_field(tus_create("10"), "Upload-Concat", "Partial"), 400,
                   "invalid-request");
    assert_refused(world, with_field(tus_create("10"), "Upload-Concat", "final;/v1/resumable/x"),
                   400, "invalid-request");
    assert_refused(world, with_field(later, "Upload-Concat", "final;/v1/resumable/x"), 400,
                   "invalid-request");
    assert_status(world, with_field(tus_create("10"), "Upload-Concat", "partial"), 201);
    assert_status(world, with_field(later, "Upload-Defer-Length", "1"), 201);
}

WITH_TUS(override_of_creation_is_405)
{
    struct answered answered =
        ask(world, with_field(tus_create("10"), "X-HTTP-Method-Override", "PATCH"));

    assert_problem(&answered, 405, "method-not-allowed");
    assert_string_equal(value_of(&answered, "Allow"), "POST, OPTIONS");
    assert_status(world, with_field(tus_create("10"), "X-HTTP-Method-Override", "post"), 201);
}

WITH_TUS(length_beyond_the_disk_is_refused_and_leaves_nothing)
{
    world->config.upload.max_bytes = INT64_MAX;
    assert_refused(world, tus_create("9000000000000000000"), 507, "insufficient-storage");
    assert_int_equal(entries_of(world, UPLOAD_FOLDER), 0);
    assert_string_equal(assert_status(world, to_ask("GET", "/v1/uploads"), 200).body,
                        "{\"uploads\":[]}\n");
}

WITH_TUS(refused_creations_leave_nothing)
{
    /* The first bytes make no piece, or are too many. */
    assert_refused(world, with_body(tus_create("10"), tus_bytes, 5), 415, "unsupported-media-type");
    assert_refused(world, with_body(tus_with_type(tus_create("10")), tus_bytes, 11), 413,
                   "too-large");
    assert_nothing_kept(world);
}

/* --- what it makes --- */

WITH_TUS(creation_is_answered_with_its_place_and_offset)
{
    struct answered answered = assert_status(world, tus_create("10"), 201);
    char target[64];

    strcpy(target, value_of(&answered, "Location"));
    assert_memory_equal(target, TARGET "/", strlen(TARGET) + 1);
    assert_int_equal(strlen(target), strlen(TARGET) + 1 + 32);
    assert_string_equal(value_of(&answered, "Upload-Offset"), "0");
    assert_string_not_equal(value_of(&answered, "Upload-Expires"), "");
    assert_string_equal(value_of(&answered, "Tus-Resumable"), "1.0.0");
    assert_offset(world, target, "0");
    assert_int_equal(entries_of(world, UPLOAD_FOLDER), 1);
}

WITH_TUS(creation_takes_the_first_bytes)
{
    struct answered answered = assert_status(
        world, with_body(tus_with_type(tus_create(tus_length_text)), tus_bytes, 100), 201);
    char target[64];

    assert_string_equal(value_of(&answered, "Upload-Offset"), "100");
    strcpy(target, value_of(&answered, "Location"));
    assert_offset(world, target, "100");
    assert_exists(world, "m.zt", false);
}

WITH_TUS(creation_with_all_bytes_publishes)
{
    struct answered answered = assert_status(
        world, with_body(tus_with_type(tus_create(tus_length_text)), tus_bytes, tus_length), 201);
    char digest[80];

    assert_string_equal(value_of(&answered, "Upload-Offset"), tus_length_text);
    assert_string_equal(value_of(&answered, "Repr-Digest"),
                        digest_of(tus_bytes, tus_length, digest));
    assert_string_not_equal(value_of(&answered, "ETag"), "");
    assert_string_equal(value_of(&answered, "Upload-Expires"), "");
    assert_exists(world, "m.zt", true);
}

WITH_TUS(creation_whose_bytes_are_no_model_is_gone)
{
    assert_fails_after_body(world, with_body(tus_with_type(tus_create("10")), tus_bytes, 10), 422,
                            "invalid-model");
    assert_nothing_kept(world);
}

WITH_TUS(creation_whose_bytes_fail_their_digest_is_gone)
{
    struct asked asked = with_body(tus_with_type(tus_create(tus_length_text)), tus_bytes, 100);

    assert_fails_after_body(world, with_field(asked, "Content-Digest", WRONG_DIGEST), 422,
                            "digest-mismatch");
    assert_nothing_kept(world);
}

/* No client can know it. */
WITH_TUS(interrupted_creation_leaves_nothing)
{
    struct sending_request sending;

    sending_begin(world, &sending,
                  with_body(tus_with_type(tus_create(tus_length_text)), tus_bytes, tus_length));
    assert_false(sending.is_early);
    sending_until(&sending, 100);
    assert_int_equal(entries_of(world, UPLOAD_FOLDER), 1);
    sending_cut(&sending);
    assert_nothing_kept(world);
}

WITH_TUS(digest_of_creation_is_that_of_the_whole_file)
{
    char digest[80];
    struct asked asked = with_body(tus_with_type(tus_create(tus_length_text)), tus_bytes, 100);
    struct answered answered;
    char target[64];

    digest_of(tus_bytes, tus_length, digest);
    answered = assert_status(world, with_field(asked, "Repr-Digest", digest), 201);
    strcpy(target, value_of(&answered, "Location"));
    assert_status(world, tus_patch(target, "100", tus_length - 100), 204);
    assert_exists(world, "m.zt", true);
}

WITH_TUS(wrong_digest_of_creation_ends_the_upload_at_the_last_byte)
{
    struct answered answered = assert_status(
        world, with_field(tus_create(tus_length_text), "Repr-Digest", WRONG_DIGEST), 201);
    char target[64];

    strcpy(target, value_of(&answered, "Location"));
    assert_fails_after_body(world, tus_patch(target, "0", tus_length), 422, "digest-mismatch");
    assert_fails_after_body(world, tus_ask("HEAD", target), 404, "");
    assert_exists(world, "m.zt", false);
}

WITH_TUS(precondition_of_creation_holds_at_publication)
{
    struct answered answered =
        assert_status(world, with_field(tus_create(tus_length_text), "If-None-Match", "*"), 201);
    char last[24];
    char target[64];

    strcpy(target, value_of(&answered, "Location"));
    assert_status(world, tus_patch(target, "0", tus_length - 1), 204);
    world_write(world, "m.npy", "x", 1);
    snprintf(last, sizeof(last), "%zu", tus_length - 1);
    assert_fails_after_body(world, tus_patch(target, last, 1), 412, "precondition-failed");
    assert_exists(world, "m.npy", true);
}
