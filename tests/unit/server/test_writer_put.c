/* PUT of a component: bodies, encodings, digests, replacement (http-api, section 6.2). */
#include "writer_request.h"

#include "http/exchange/client.h"
#include "upload/writer/writer_arrival.h"

#define DATA "/objects/a/data?dtype=u8&shape=6"
/* SHA-256 of "abcdef", and of no known bytes. */
#define ABCDEF_HEX "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721"
#define OTHER_HEX  "0000000000000000000000000000000000000000000000000000000000000000"

static char target[64];
static char digest[80];

static int set_up(void **state)
{
    int failed = uploads_set_up(state);

    writer_create(*state, "", target);
    digest_of("abcdef", 6, digest);
    return failed;
}

static int set_up_zt2(void **state)
{
    int failed = uploads_set_up(state);

    writer_create(*state, WRITER_ZT2, target);
    digest_of("abcdef", 6, digest);
    return failed;
}

static struct asked put(const char *rest)
{
    return writer_put(target, rest, "abcdef", 6);
}

static struct asked put_other(const char *rest)
{
    return writer_put(target, rest, "ghijkl", 6);
}

/* A zstd frame of "abcdef" in two raw blocks (RFC 8878 section 3.1.1), as no encoder here makes
 * it. */
static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x20, 6, 0x18, 0,   0,
                                'a',  'b',  'c',  0x19, 0,    0, 'd',  'e', 'f'};

static struct asked put_frame(const char *rest, size_t length)
{
    return with_field(writer_put(target, rest, frame, length), "Content-Encoding", "zstd");
}

static void assert_holds_abcdef(struct world *world)
{
    assert_status_holds(world, target, "\"sha256\":\"" ABCDEF_HEX "\"");
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, uploads_tear_down)

/* --- bodies --- */

PREPARED(component_is_answered_with_the_digest_of_its_bytes)
{
    struct answered answered = assert_status(world, put(DATA), 201);

    assert_string_equal(value_of(&answered, "Repr-Digest"), digest);
    assert_status_holds(world, target,
                        "\"components\":{\"data\":{\"dtype\":\"u8\",\"type\":\"u8\",\"shape\":[6],"
                        "\"encoding\":\"raw\",\"length\":6,\"uncompressed_length\":6,"
                        "\"sha256\":\"" ABCDEF_HEX "\"}}");
}

PREPARED(bytes_arrive_whole_however_they_are_cut)
{
    static const char *const rests[] = {DATA, DATA "&encoding=zstd"};

    for (unsigned i = 0; i < 12; i++) {
        struct asked asked = put(rests[i % 2]);
        struct answered answered;

        asked.piece_bytes = 1 + i / 4;
        asked.on_workers = i % 4 >= 2;
        answered = assert_status(world, asked, 201);
        assert_string_equal(value_of(&answered, "Repr-Digest"), digest);
    }
}

PREPARED(chunked_body_has_exactly_the_bytes_of_its_shape)
{
    static const char *const others[] = {"/objects/a/data?dtype=u8&shape=7",
                                         "/objects/a/data?dtype=u8&shape=5"};

    for (size_t i = 0; i < 2; i++) {
        struct asked asked = put(others[i]);

        asked.chunked = true;
        assert_fails_after_body(world, asked, 422, "size-mismatch");
    }
    assert_status_holds(world, target, "\"objects\":{}");
}

PREPARED(cut_body_leaves_no_component)
{
    unsigned before = open_descriptors();

    for (size_t end = 0; end <= 6; end += 3) {
        struct sending_request sending;
        struct asked asked = put(DATA);

        asked.piece_bytes = 3;
        sending_begin(world, &sending, asked);
        assert_false(sending.is_early);
        sending_until(&sending, end);
        sending_cut(&sending);
        assert_status_holds(world, target, "\"objects\":{}");
        assert_descriptors(before);
    }
}

PREPARED(work_belongs_to_whoever_sends)
{
    struct sending_request sending;
    const struct arrival *arrival;

    sending_begin(world, &sending, put(DATA));
    arrival = sending.request->context;
    assert_true(request_client_key(sending.request) != JOB_OF_SERVER);
    assert_true(arrival->follower.client == request_client_key(sending.request));
    sending_cut(&sending);
}

PREPARED(components_arrive_side_by_side)
{
    struct sending_request first;
    struct sending_request second;
    struct asked asked = put(DATA);

    asked.piece_bytes = 1;
    sending_begin(world, &first, asked);
    asked.target = writer_path(target, "/objects/b/data?dtype=u8&shape=6");
    asked.body = "ghijkl";
    sending_begin(world, &second, asked);
    for (size_t end = 1; end <= 6; end++) {
        sending_until(&first, end);
        sending_until(&second, end);
    }
    assert_int_equal(sending_end(&second).status, 201);
    assert_int_equal(sending_end(&first).status, 201);
    assert_holds_abcdef(world);
    assert_status(world, writer_post_commit(target), 201);
}

/* --- replacement --- */

PREPARED(component_sent_again_replaces_the_earlier)
{
    assert_status(world, put_other(DATA), 201);
    assert_status(world, put(DATA), 201);
    assert_holds_abcdef(world);
    assert_status_holds(world, target, "\"received\":6,");
}

PREPARED(failed_replacement_keeps_the_earlier)
{
    struct sending_request sending;
    struct asked asked;

    assert_status(world, put(DATA), 201);
    assert_fails_after_body(world, with_field(put_other(DATA), "Content-Digest", digest), 422,
                            "digest-mismatch");
    assert_holds_abcdef(world);
    asked = put_other("/objects/a/data?dtype=u8&shape=9");
    asked.chunked = true;
    assert_fails_after_body(world, asked, 422, "size-mismatch");
    assert_holds_abcdef(world);
    asked = put_other(DATA);
    asked.piece_bytes = 2;
    sending_begin(world, &sending, asked);
    sending_until(&sending, 4);
    sending_cut(&sending);
    assert_holds_abcdef(world);
}

PREPARED(replacement_of_another_type_counts_at_the_next_status)
{
    assert_status(world, put(DATA), 201);
    assert_status(world, put("/objects/a/data?dtype=u16&shape=3"), 201);
    assert_status_holds(world, target, "\"dtype\":\"u16\",\"type\":\"u16\",\"shape\":[3]");
}

/* --- digests --- */

PREPARED(wrong_digests_add_nothing)
{
    assert_fails_after_body(world, with_field(put(DATA), "Content-Digest", WRONG_DIGEST), 422,
                            "digest-mismatch");
    assert_fails_after_body(world, with_field(put(DATA), "Repr-Digest", WRONG_DIGEST), 422,
                            "digest-mismatch");
    assert_fails_after_body(world, put(DATA "&digest=sha256:" OTHER_HEX), 422, "digest-mismatch");
    assert_status_holds(world, target, "\"objects\":{}");
}

PREPARED(right_digests_are_accepted)
{
    struct asked asked = put(DATA "&digest=sha256:" ABCDEF_HEX);

    asked = with_field(with_field(asked, "Content-Digest", digest), "Repr-Digest", digest);
    assert_status(world, asked, 201);
}

/* Bytes that are here already need not be sent. */
PREPARED(empty_body_with_an_unknown_digest_is_404)
{
    assert_fails_after_body(world, writer_put(target, DATA "&digest=sha256:" OTHER_HEX, "", 0), 404,
                            "component-not-found");
    assert_status_holds(world, target, "\"objects\":{}");
}

/* --- encodings --- */

PREPARED(compressed_body_is_stored_as_it_is_in_zt1)
{
    struct answered answered = assert_status(world, put_frame(DATA, sizeof(frame)), 201);

    assert_string_equal(value_of(&answered, "Repr-Digest"), digest);
    assert_status_holds(world, target,
                        "\"encoding\":\"zstd\",\"length\":18,\"uncompressed_length\":6");
}

TEST_IN_WORLD(compressed_body_is_recoded_in_zt2, set_up_zt2, uploads_tear_down)
{
    assert_status(world, put_frame(DATA, sizeof(frame)), 201);
    assert_status_holds(world, target, "\"encoding\":\"zt.zstd-seekable/1\"");
    assert_holds_abcdef(world);
    assert_null(strstr(assert_status(world, to_ask("GET", target), 200).body, "\"length\":18"));
    assert_status(world, writer_post_commit(target), 201);
}

PREPARED(compressed_body_is_stored_raw_if_asked)
{
    assert_status(world, put_frame(DATA "&encoding=raw", sizeof(frame)), 201);
    assert_status_holds(world, target, "\"encoding\":\"raw\",\"length\":6");
    assert_holds_abcdef(world);
}

PREPARED(compressed_body_of_another_length_is_refused)
{
    assert_fails_after_body(world, put_frame("/objects/a/data?dtype=u8&shape=5", sizeof(frame)),
                            422, "size-mismatch");
    assert_fails_after_body(world, put_frame("/objects/a/data?dtype=u8&shape=7", sizeof(frame)),
                            422, "size-mismatch");
    assert_status_holds(world, target, "\"objects\":{}");
}

PREPARED(broken_frames_add_nothing)
{
    for (size_t length = 1; length < sizeof(frame); length++)
        assert_true(ask(world, put_frame(DATA, length)).status >= 400);
    assert_status_holds(world, target, "\"objects\":{}");
}

PREPARED(compression_on_the_way_is_stated)
{
    struct answered answered = assert_status(world, put(DATA "&encoding=zstd&level=3"), 201);

    assert_string_equal(value_of(&answered, "Repr-Digest"), digest);
    assert_status_holds(world, target, "\"encoding\":\"zstd\"");
    assert_status_holds(world, target, "\"uncompressed_length\":6");
}
