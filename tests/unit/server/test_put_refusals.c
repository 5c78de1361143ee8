/* PUT of a model: what is refused before the body, and in which order (http-api, section 6). */
#include "upload_request.h"

#define TARGET    "/v1/models/m"
#define MAX_BYTES 10000

static uint8_t bytes[MODEL_MAX];
static size_t length;

static int set_up(void **state)
{
    int failed = uploads_set_up(state);
    struct world *world = *state;

    world->config.upload.max_bytes = MAX_BYTES;
    length = world_model_bytes(world, true, bytes, sizeof(bytes));
    return failed;
}

/* The model, under a name, with one more field. */
static struct asked put_to(const char *target, const char *name, const char *value)
{
    return with_field(with_body(to_ask("PUT", target), bytes, length), name, value);
}

static struct asked put_with(const char *name, const char *value)
{
    return put_to(TARGET, name, value);
}

static struct asked put_beyond_the_disk(void)
{
    struct asked asked = to_ask("PUT", TARGET);

    asked.declared = (uint64_t)INT64_MAX - 1;
    return asked;
}

static void assert_accepted(struct world *world, const char *target)
{
    assert_status(world, put_to(target, NULL, NULL), 201);
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, uploads_tear_down)

/* Each request has one fault fewer than the one before it. */
PREPARED(refusals_come_in_the_order_of_the_contract)
{
    static const struct {
        unsigned status;
        const char *code;
        const char *fields[9];
        uint64_t declared;
    } cases[] = {
        {403,
         "read-only",
         {"Content-Range", "bytes 0-1/2", "Content-Encoding", "gzip", "Content-Digest", "sha-256=x",
          "If-None-Match", "*", NULL},
         MAX_BYTES + 1},
        {400,
         "invalid-request",
         {"Content-Range", "bytes 0-1/2", "Content-Encoding", "gzip", "Content-Digest", "sha-256=x",
          "If-None-Match", "*", NULL},
         MAX_BYTES + 1},
        {415,
         "unsupported-media-type",
         {"Content-Encoding", "gzip", "Content-Digest", "sha-256=x", "If-None-Match", "*", NULL},
         MAX_BYTES + 1},
        {400,
         "invalid-request",
         {"Content-Digest", "sha-256=x", "If-None-Match", "*", NULL},
         MAX_BYTES + 1},
        {412, "precondition-failed", {"If-None-Match", "*", NULL}, MAX_BYTES + 1},
        {413, "too-large", {NULL}, MAX_BYTES + 1},
    };

    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct asked asked = to_ask("PUT", TARGET);

        asked.declared = cases[i].declared;
        memcpy(asked.fields, cases[i].fields, sizeof(cases[i].fields));
        world->config.writable = i > 0;
        assert_refused(world, asked, cases[i].status, cases[i].code);
    }
}

PREPARED(names_that_are_not_models_are_refused_before_the_precondition)
{
    static const char *const targets[] = {
        "/v1/models/.hidden", "/v1/models/a%2F%2Fb", "/v1/models/a%2F..%2Fb", "/v1/models/a%20b",
        "/v1/models/%2Fa",    "/v1/models/a%2F",     "/v1/models/%C3%A9",     "/v1/models/-a",
    };
    unsigned before = entries_of(world, ".");

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        assert_refused(world, put_to(targets[i], "If-Match", "\"none\""), 400, "invalid-name");
    assert_int_equal(entries_of(world, "."), before);
}

/* 255 bytes are a model's name, but ".zt" has to fit as well. */
PREPARED(last_part_of_a_name_fits_with_its_extension)
{
    char name[253 + 1] = "";
    char target[300];

    memset(name, 'n', 253);
    snprintf(target, sizeof(target), "/v1/models/%s", name);
    assert_refused(world, put_to(target, NULL, NULL), 400, "invalid-name");
    name[252] = '\0';
    snprintf(target, sizeof(target), "/v1/models/%s", name);
    assert_accepted(world, target);
}

PREPARED(identity_is_the_only_content_coding)
{
    assert_refused(world, put_with("Content-Encoding", "zstd"), 415, "unsupported-media-type");
    assert_refused(world, put_with("Content-Encoding", "identity, gzip"), 415,
                   "unsupported-media-type");
    assert_status(world, put_with("Content-Encoding", "Identity"), 201);
}

PREPARED(malformed_digest_fields_are_refused)
{
    static const char *const names[] = {"Content-Digest", "Repr-Digest"};
    static const char *const values[] = {"=x", "sha-256=abc", "sha-256=:AAAA:", "sha-256=:!:"};

    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++)
            assert_refused(world, put_with(names[i], values[j]), 400, "invalid-request");
}

PREPARED(unknown_digest_algorithms_are_ignored)
{
    assert_status(world, put_with("Repr-Digest", "md5=:AAAA:"), 201);
}

/* Ignored, it would let a write through that the client meant to prevent. */
PREPARED(malformed_if_none_match_is_refused)
{
    assert_refused(world, put_with("If-None-Match", "tag"), 400, "invalid-request");
    assert_refused(world, put_with("If-None-Match", "\"a\", *"), 400, "invalid-request");
}

PREPARED(malformed_if_match_matches_nothing)
{
    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    assert_refused(world, put_with("If-Match", "tag"), 412, "precondition-failed");
}

PREPARED(preconditions_are_checked_against_the_catalog)
{
    struct generation *current;

    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    current = world_find(world, "m");
    assert_refused(world, put_with("If-None-Match", "*"), 412, "precondition-failed");
    assert_refused(world, put_with("If-None-Match", current->etag), 412, "precondition-failed");
    assert_refused(world, put_with("If-Match", "\"another\""), 412, "precondition-failed");
    assert_refused(world, put_with("If-Unmodified-Since", "Sat, 08 Sep 2001 00:00:00 GMT"), 412,
                   "precondition-failed");
    assert_refused(world, put_to("/v1/models/absent", "If-Match", "*"), 412, "precondition-failed");
    assert_status(world, put_with("If-Match", current->etag), 204);
    generation_release(current);
}

/* What only a scan can tell is left to publication, which waits for nothing in the loop. */
PREPARED(unknown_names_are_checked_at_publication)
{
    world_model(world, "m.zt", true);
    assert_fails_after_body(world, put_with("If-None-Match", "*"), 412, "precondition-failed");
}

PREPARED(body_is_required)
{
    assert_refused(world, to_ask("PUT", TARGET), 411, "length-required");
}

/* An empty body is a body, and no model. */
PREPARED(declared_length_of_0_is_a_body)
{
    assert_fails_after_body(world, with_body(to_ask("PUT", TARGET), "", 0), 422, "invalid-model");
}

PREPARED(lengths_up_to_the_limit_are_taken)
{
    world->config.upload.max_bytes = (int64_t)length;
    assert_accepted(world, TARGET);
    world->config.upload.max_bytes = (int64_t)length - 1;
    assert_refused(world, put_with(NULL, NULL), 413, "too-large");
}

PREPARED(length_beyond_the_disk_is_refused)
{
    world->config.upload.max_bytes = INT64_MAX;
    assert_refused(world, put_beyond_the_disk(), 507, "insufficient-storage");
}

PREPARED(refused_requests_leave_nothing_registered)
{
    unsigned before = open_descriptors();

    world->config.upload.max_bytes = INT64_MAX;
    assert_refused(world, put_beyond_the_disk(), 507, "insufficient-storage");
    assert_descriptors(before);
    assert_string_equal(assert_status(world, to_ask("GET", "/v1/uploads"), 200).body,
                        "{\"uploads\":[]}\n");
}

static bool refuse_mirrored(struct store *store, const char *path, char out_why[STORE_WHY_SIZE])
{
    (void)store;
    snprintf(out_why, STORE_WHY_SIZE, "o/m is mirrored from the hub");
    return strncmp(path, "o/m/", 4) == 0;
}

PREPARED(mirrored_repositories_are_refused)
{
    static const struct store_revision_ops revisions = {.refuses = refuse_mirrored};

    world->server.store->revisions = &revisions;
    assert_refused(world, put_to("/v1/models/o%2Fm%2Fx", NULL, NULL), 409, "conflict");
    assert_refused(world, put_to("/files/o/m/x.txt", NULL, NULL), 409, "conflict");
    assert_accepted(world, "/v1/models/o%2Fm");
    assert_accepted(world, "/v1/models/o%2Fn%2Fx");
    world->server.store->revisions = NULL;
}
