/* PATCH of a resumable upload: offsets, checksums, the last byte, bodies that end early, requests
 * that meet. */
#include "tus_request.h"

#include "http/exchange/client.h"
#include "upload/tus/tus.h"
#include "upload/tus/tus_body.h"

/* SHA-1 and SHA-256 of "abc" (FIPS 180-4), and a SHA-1 of the empty text, in base64. */
#define ABC_SHA1   "sha1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
#define EMPTY_SHA1 "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk="
#define ABC_SHA256 "sha256 ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="

static char target[64];

static void begin(struct world *world)
{
    tus_begin(world, tus_length_text, target);
}

static struct asked abc_with(const char *name, const char *value)
{
    struct asked asked = tus_patch(target, "0", 3);

    asked.body = "abc";
    return with_field(asked, name, value);
}

/* --- refusals --- */

/* Each request has one fault fewer than the one before it. */
WITH_TUS(refusals_come_in_the_order_of_the_contract)
{
    struct asked asked = with_body(
        to_ask("PATCH", "/v1/resumable/0123456789abcdef0123456789abcdef"), tus_bytes, tus_length);

    begin(world);
    asked = with_field(asked, "Content-Encoding", "gzip");
    world->config.writable = false;
    assert_refused(world, asked, 403, "read-only");
    world->config.writable = true;
    assert_refused(world, asked, 412, "precondition-failed");
    asked = with_field(asked, "Tus-Resumable", "1.0.0");
    assert_refused(world, asked, 404, "upload-not-found");
    asked.target = target;
    assert_refused(world, asked, 415, "unsupported-media-type");
    asked = tus_with_type(asked);
    assert_refused(world, asked, 415, "unsupported-media-type");
    asked.fields[1] = "identity";
    assert_refused(world, asked, 400, "invalid-request");
    asked = with_field(asked, "Upload-Offset", "1");
    assert_refused(world, asked, 409, "conflict");
    asked.fields[7] = "0";
    asked.length++;
    assert_refused(world, asked, 413, "too-large");
    asked.length--;
    assert_status(world, asked, 204);
}

WITH_TUS(offset_is_a_number_of_bytes)
{
    static const char *const offsets[] = {"", "-0", "0 ", "0x0", "99999999999999999999"};

    begin(world);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
        assert_refused(world,
                       with_body(tus_with_type(with_field(tus_ask("PATCH", target), "Upload-Offset",
                                                          offsets[i])),
                                 tus_bytes, 1),
                       400, "invalid-request");
}

WITH_TUS(only_the_next_offset_is_taken)
{
    begin(world);
    assert_status(world, tus_patch(target, "0", 100), 204);
    assert_refused(world, tus_patch(target, "0", 100), 409, "conflict");
    assert_refused(world, tus_patch(target, "99", 1), 409, "conflict");
    assert_refused(world, tus_patch(target, "101", 1), 409, "conflict");
    assert_offset(world, target, "100");
}

WITH_TUS(media_type_may_have_parameters_only)
{
    static const char *const others[] = {"application/octet-stream", TUS_TYPE "x", TUS_TYPE " x",
                                         "application/offset+octet"};
    struct asked asked;

    begin(world);
    asked = with_body(with_field(tus_ask("PATCH", target), "Upload-Offset", "0"), tus_bytes, 1);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_refused(world, with_field(asked, "Content-Type", others[i]), 415,
                       "unsupported-media-type");
    assert_status(world, with_field(asked, "Content-Type", "Application/Offset+octet-stream ; a=b"),
                  204);
}

WITH_TUS(unknown_and_malformed_checksums_are_refused)
{
    static const char *const texts[] = {"md5 kAFQmDzST7DWlj99KOF/cg==", "sha1", "sha1 !",
                                        "sha1 kAFQmDzST7DWlj99KOF/cg==", ""};

    begin(world);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_refused(world, abc_with("Upload-Checksum", texts[i]), 400, "invalid-request");
}

/* --- pieces --- */

static void add_up(struct world *world, bool on_workers)
{
    struct answered answered;
    char digest[80];
    char offset[24];

    begin(world);
    for (size_t at = 0; at < tus_length; at += 100) {
        size_t length = tus_length - at < 100 ? tus_length - at : 100;
        struct asked asked;

        snprintf(offset, sizeof(offset), "%zu", at);
        assert_exists(world, "m.zt", false);
        asked = tus_patch(target, offset, length);
        asked.on_workers = on_workers;
        asked.piece_bytes = 30;
        answered = assert_status(world, asked, 204);
        snprintf(offset, sizeof(offset), "%zu", at + length);
        assert_string_equal(value_of(&answered, "Upload-Offset"), offset);
    }
    assert_string_equal(value_of(&answered, "Location"), "/v1/models/m");
    assert_string_equal(value_of(&answered, "Repr-Digest"),
                        digest_of(tus_bytes, tus_length, digest));
    assert_exists(world, "m.zt", true);
}

WITH_TUS(pieces_add_up_to_the_model)
{
    add_up(world, false);
}

WITH_TUS(pieces_that_workers_take_add_up_to_the_model)
{
    add_up(world, true);
}

WITH_TUS(work_belongs_to_whoever_sends)
{
    struct sending_request sending;
    const struct tus_body *body;

    begin(world);
    sending_begin(world, &sending, tus_patch(target, "0", 10));
    body = sending.request->context;
    assert_true(request_client_key(sending.request) != JOB_OF_SERVER);
    assert_true(body->resumable->follower.client == request_client_key(sending.request));
    assert_true(body->job.client == request_client_key(sending.request));
    sending_cut(&sending);
}

WITH_TUS(unfinished_piece_states_when_the_upload_expires)
{
    struct answered answered;

    begin(world);
    answered = assert_status(world, tus_patch(target, "0", 10), 204);
    assert_string_not_equal(value_of(&answered, "Upload-Expires"), "");
    assert_string_equal(value_of(&answered, "Location"), "");
    assert_string_equal(value_of(&answered, "Repr-Digest"), "");
}

WITH_TUS(chunked_piece_past_the_end_keeps_what_fits)
{
    struct asked asked;

    tus_begin(world, "100", target);
    asked = tus_patch(target, "0", 120);
    asked.chunked = true;
    asked.piece_bytes = 60;
    assert_fails_after_body(world, asked, 413, "too-large");
    assert_offset(world, target, "60");
}

WITH_TUS(cut_piece_keeps_what_arrived)
{
    struct sending_request sending;

    begin(world);
    sending_begin(world, &sending, tus_patch(target, "0", tus_length));
    sending_until(&sending, 150);
    sending_cut(&sending);
    assert_offset(world, target, "150");
    assert_status(world, tus_patch(target, "150", tus_length - 150), 204);
    assert_exists(world, "m.zt", true);
}

/* It can no longer be checked. */
WITH_TUS(cut_piece_with_a_digest_is_dropped)
{
    struct sending_request sending;
    unsigned before;

    begin(world);
    before = open_descriptors();
    sending_begin(world, &sending,
                  with_field(tus_patch(target, "0", tus_length), "Content-Digest", WRONG_DIGEST));
    sending_until(&sending, 150);
    sending_cut(&sending);
    assert_descriptors(before);
    assert_offset(world, target, "0");
}

/* --- checksums --- */

WITH_TUS(right_checksums_are_accepted)
{
    static const char *const checksums[] = {ABC_SHA1, ABC_SHA256};

    for (size_t i = 0; i < 2; i++) {
        begin(world);
        assert_status(world, abc_with("Upload-Checksum", checksums[i]), 204);
        assert_offset(world, target, "3");
    }
}

WITH_TUS(wrong_checksum_is_460_and_adds_nothing)
{
    begin(world);
    assert_fails_after_body(world, abc_with("Upload-Checksum", EMPTY_SHA1), 460,
                            "checksum-mismatch");
    assert_offset(world, target, "0");
    assert_status(world, tus_patch(target, "0", tus_length), 204);
}

WITH_TUS(wrong_digest_fields_are_422_and_add_nothing)
{
    begin(world);
    assert_fails_after_body(world, abc_with("Content-Digest", WRONG_DIGEST), 422,
                            "digest-mismatch");
    assert_fails_after_body(world, abc_with("Repr-Digest", WRONG_DIGEST), 422, "digest-mismatch");
    assert_offset(world, target, "0");
}

WITH_TUS(checked_pieces_add_up_too)
{
    char digest[80];

    begin(world);
    digest_of(tus_bytes, 100, digest);
    assert_status(world, with_field(tus_patch(target, "0", 100), "Content-Digest", digest), 204);
    digest_of(tus_bytes + 100, tus_length - 100, digest);
    assert_status(world,
                  with_field(tus_patch(target, "100", tus_length - 100), "Content-Digest", digest),
                  204);
    assert_exists(world, "m.zt", true);
}

/* --- requests that meet --- */

WITH_TUS(second_patch_at_once_is_423)
{
    struct sending_request sending;
    struct answered answered;

    begin(world);
    sending_begin(world, &sending, tus_patch(target, "0", tus_length));
    sending_until(&sending, 100);
    answered = ask(world, tus_patch(target, "100", 10));
    assert_problem(&answered, 423, "conflict");
    assert_true(answered.is_early);
    assert_string_equal(value_of(&answered, "Retry-After"), "1");
    sending_until(&sending, tus_length);
    assert_int_equal(sending_end(&sending).status, 204);
}

WITH_TUS(patch_that_lost_its_claim_is_409)
{
    struct sending_request sending;
    struct answered answered;

    begin(world);
    sending_begin(world, &sending, tus_patch(target, "0", tus_length));
    sending_until(&sending, 100);
    assert_status(world, tus_ask("DELETE", target), 204);
    sending_until(&sending, tus_length);
    answered = sending_end(&sending);
    assert_problem(&answered, 409, "conflict");
    assert_exists(world, "m.zt", false);
    assert_nothing_kept(world);
}

WITH_TUS(refused_patch_gives_its_claim_back)
{
    begin(world);
    assert_refused(world, tus_patch(target, "7", 1), 409, "conflict");
    assert_status(world, tus_patch(target, "0", tus_length), 204);
}

/* The client may try again as soon as it has the answer, which is before the server has forgotten
 * the request. */
WITH_TUS(patch_after_a_refusal_need_not_wait)
{
    struct sending_request refused;
    struct answered answered;

    begin(world);
    sending_begin(world, &refused, tus_patch(target, "0", tus_length + 1));
    assert_true(refused.is_early);
    answered = ask(world, tus_patch(target, "0", tus_length));
    assert_int_equal(answered.status, 204);
    answered = sending_end(&refused);
    assert_problem(&answered, 413, "too-large");
}

/* Begins an upload of unknown length and a body for it, as on a loop that is held up for so long
 * that the claim is given to another request. */
static struct tus_body *begin_held_up(struct world *world, struct sending_request *out_sending)
{
    const struct asked create =
        with_field(with_field(tus_ask("POST", "/v1/resumable"), "Upload-Metadata", TUS_METADATA),
                   "Upload-Defer-Length", "1");
    const struct answered answered = assert_status(world, create, 201);
    struct tus_body *body;

    strcpy(target, value_of(&answered, "Location"));
    sending_begin(world, out_sending, tus_patch(target, "0", 50));
    assert_false(out_sending->is_early);
    body = out_sending->request->context;
    claim_end(&body->resumable->claim, body->claim);
    return body;
}

WITH_TUS(piece_of_a_body_that_was_held_up_is_409)
{
    struct sending_request sending;
    struct answered answered;
    struct tus_body *body = begin_held_up(world, &sending);

    assert_status(world, tus_patch(target, "0", 100), 204);
    /* What it would find now, with an Upload-Length of 50. */
    body->begin = 100;
    body->most = 50;
    sending_until(&sending, 50);
    answered = sending_end(&sending);
    assert_problem(&answered, 409, "conflict");
    assert_offset(world, target, "100");
}

WITH_TUS(length_of_a_body_that_was_held_up_is_409)
{
    struct sending_request sending;
    struct tus_body *body = begin_held_up(world, &sending);

    resumable_leave(body->resumable);
    body->has_entered = false;
    assert_status(world, with_field(tus_patch(target, "0", 10), "Upload-Length", "100"), 204);
    body->stated_length = 50;
    assert_true(tus_body_refuse_start(sending.request, body));
    assert_int_equal(sending.request->reply.status, 409);
    assert_int_equal(atomic_load(&body->resumable->length), 100);
    sending_cut(&sending);
}
