/* HEAD, DELETE and OPTIONS of a resumable upload, POST with an override, and what lasts across a
 * restart. */
#include "tus_request.h"

#define UNKNOWN "/v1/resumable/0123456789abcdef0123456789abcdef"

static char target[64];

static void begin(struct world *world)
{
    tus_begin(world, tus_length_text, target);
}

static void publish(struct world *world)
{
    begin(world);
    assert_status(world, tus_patch(target, "0", tus_length), 204);
}

/* --- HEAD --- */

WITH_TUS(head_states_what_creation_stated)
{
    struct answered answered;

    begin(world);
    assert_status(world, tus_patch(target, "0", 100), 204);
    answered = assert_status(world, tus_ask("HEAD", target), 200);
    assert_string_equal(value_of(&answered, "Upload-Offset"), "100");
    assert_string_equal(value_of(&answered, "Upload-Length"), tus_length_text);
    assert_string_equal(value_of(&answered, "Upload-Metadata"), TUS_METADATA);
    assert_string_equal(value_of(&answered, "Cache-Control"), "no-store");
    assert_string_equal(value_of(&answered, "Location"), "");
}

WITH_TUS(head_of_a_published_upload_names_the_model)
{
    struct answered answered;

    publish(world);
    answered = assert_status(world, tus_ask("HEAD", target), 200);
    assert_string_equal(value_of(&answered, "Upload-Offset"), tus_length_text);
    assert_string_equal(value_of(&answered, "Location"), "/v1/models/m");
    assert_string_equal(value_of(&answered, "Upload-Expires"), "");
}

WITH_TUS(head_needs_the_version_and_the_upload)
{
    begin(world);
    assert_int_equal(ask(world, to_ask("HEAD", target)).status, 412);
    assert_int_equal(ask(world, tus_ask("HEAD", UNKNOWN)).status, 404);
    assert_int_equal(ask(world, tus_ask("HEAD", "/v1/resumable/..")).status, 404);
}

WITH_TUS(head_is_answered_on_a_read_only_server)
{
    begin(world);
    world->config.writable = false;
    assert_offset(world, target, "0");
}

/* The offset of the whole length would look like success. */
WITH_TUS(head_tries_again_to_publish_what_is_whole)
{
    struct answered answered;

    begin(world);
    world_command(world, "mkdir m.zt");
    answered = ask(world, tus_patch(target, "0", tus_length));
    assert_problem(&answered, 409, "conflict");
    world_command(world, "rmdir m.zt");
    answered = assert_status(world, tus_ask("HEAD", target), 200);
    assert_string_equal(value_of(&answered, "Location"), "/v1/models/m");
    assert_exists(world, "m.zt", true);
}

/* --- DELETE --- */

WITH_TUS(delete_leaves_nothing)
{
    unsigned before = open_descriptors();

    begin(world);
    assert_status(world, tus_patch(target, "0", 100), 204);
    assert_status(world, tus_ask("DELETE", target), 204);
    assert_nothing_kept(world);
    assert_descriptors(before);
    assert_int_equal(ask(world, tus_ask("HEAD", target)).status, 404);
    assert_refused(world, tus_patch(target, "100", 1), 404, "upload-not-found");
    assert_fails_after_body(world, tus_ask("DELETE", target), 404, "upload-not-found");
}

WITH_TUS(delete_of_a_published_upload_is_404_and_keeps_the_model)
{
    publish(world);
    assert_fails_after_body(world, tus_ask("DELETE", target), 404, "upload-not-found");
    assert_exists(world, "m.zt", true);
}

WITH_TUS(delete_needs_writing_and_the_version)
{
    begin(world);
    world->config.writable = false;
    assert_refused(world, to_ask("DELETE", target), 403, "read-only");
    world->config.writable = true;
    assert_refused(world, to_ask("DELETE", target), 412, "precondition-failed");
    assert_offset(world, target, "0");
}

/* --- after the last byte --- */

WITH_TUS(bytes_after_the_last_are_refused)
{
    publish(world);
    assert_refused(world, tus_patch(target, tus_length_text, 1), 413, "too-large");
    assert_refused(world, tus_patch(target, "0", 1), 409, "conflict");
}

/* A client repeats its last request when the answer was lost. */
WITH_TUS(empty_piece_after_the_last_byte_repeats_the_answer)
{
    struct answered answered;
    char digest[80];

    publish(world);
    answered = assert_status(world, tus_patch(target, tus_length_text, 0), 204);
    assert_string_equal(value_of(&answered, "Location"), "/v1/models/m");
    assert_string_equal(value_of(&answered, "Repr-Digest"),
                        digest_of(tus_bytes, tus_length, digest));
}

WITH_TUS(offset_and_bytes_survive_a_restart)
{
    begin(world);
    assert_status(world, tus_patch(target, "0", 150), 204);
    uploads_restart(world);
    assert_offset(world, target, "150");
    assert_status(world, tus_patch(target, "150", tus_length - 150), 204);
    assert_exists(world, "m.zt", true);
}

/* --- POST with an override --- */

WITH_TUS(override_does_what_patch_and_delete_do)
{
    struct asked asked;

    begin(world);
    asked = with_field(tus_patch(target, "0", 100), "X-HTTP-Method-Override", "patch");
    asked.method = "POST";
    assert_status(world, asked, 204);
    assert_offset(world, target, "100");
    assert_status(world, with_field(tus_ask("POST", target), "X-HTTP-Method-Override", "DELETE"),
                  204);
    assert_nothing_kept(world);
}

WITH_TUS(other_overrides_are_405)
{
    static const char *const methods[] = {"PUT", "HEAD", "PATCHES", ""};
    struct answered answered;

    begin(world);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        answered =
            ask(world, with_field(tus_ask("POST", target), "X-HTTP-Method-Override", methods[i]));
        assert_problem(&answered, 405, "method-not-allowed");
        assert_string_equal(value_of(&answered, "Allow"), "GET, HEAD, DELETE, PATCH, OPTIONS");
    }
    assert_refused(world, tus_ask("POST", target), 405, "method-not-allowed");
}

/* --- OPTIONS --- */

WITH_TUS(options_states_what_is_offered)
{
    struct answered answered;

    world->config.upload.max_bytes = 12345;
    answered = assert_status(world, to_ask("OPTIONS", "/v1/resumable"), 204);
    assert_string_equal(value_of(&answered, "Tus-Version"), "1.0.0");
    assert_string_equal(value_of(&answered, "Tus-Resumable"), "1.0.0");
    assert_string_equal(
        value_of(&answered, "Tus-Extension"),
        "creation,creation-with-upload,creation-defer-length,checksum,concatenation,"
        "expiration,termination");
    assert_string_equal(value_of(&answered, "Tus-Max-Size"), "12345");
    assert_string_equal(value_of(&answered, "Tus-Checksum-Algorithm"), "sha1,sha256");
}
