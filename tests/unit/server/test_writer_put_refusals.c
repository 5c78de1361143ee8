/* PUT of a component: what its parameters may be, and what is refused before the body (http-api,
 * section 6.2). */
#include "store/staging.h"
#include "upload/writer/writer_session.h"
#include "writer_request.h"

#define DATA "/objects/a/data"
#define ONE  DATA "?dtype=u8&shape=1"
/* What an open upload says of its objects when it has none. */
#define NO_OBJECTS "\"objects\":{}"

static char target[64];

static int set_up(void **state)
{
    int failed = uploads_set_up(state);

    writer_create(*state, "", target);
    return failed;
}

static int set_up_zt2(void **state)
{
    int failed = uploads_set_up(state);

    writer_create(*state, WRITER_ZT2, target);
    return failed;
}

/* A component of so many bytes, which say nothing. */
static struct asked put(const char *rest, size_t length)
{
    static const uint8_t zeros[1024];

    return writer_put(target, rest, zeros, length);
}

/* --- order --- */

#define IN_ZT1(name) TEST_IN_WORLD(name, set_up, uploads_tear_down)

/* Each request has one fault fewer than the one before it. */
IN_ZT1(refusals_come_in_the_order_of_the_contract)
{
    static const char *const unknown =
        "/v1/uploads/0123456789abcdef0123456789abcdef/objects/a/data?dtype=q7&level=0";
    struct asked asked = with_field(to_ask("PUT", unknown), "Content-Encoding", "gzip");

    world->config.upload.max_bytes = 7;
    world->config.writable = false;
    assert_refused(world, asked, 403, "read-only");
    world->config.writable = true;
    assert_refused(world, asked, 404, "upload-not-found");
    asked.target = writer_path(target, DATA "?dtype=q7&level=0");
    assert_refused(world, asked, 400, "invalid-request");
    asked.target = writer_path(target, DATA "?dtype=q7");
    assert_refused(world, asked, 411, "length-required");
    asked = with_body(asked, "12345678", 8);
    assert_refused(world, asked, 415, "unsupported-media-type");
    asked.fields[1] = "identity";
    assert_refused(world, asked, 422, "unknown-dtype");
    asked.target = writer_path(target, DATA "?dtype=u8");
    assert_refused(world, asked, 400, "invalid-request");
    asked.target = writer_path(target, DATA "?dtype=u8&shape=7");
    assert_refused(world, asked, 422, "size-mismatch");
    asked.target = writer_path(target, DATA "?dtype=u8&shape=8");
    assert_refused(world, asked, 413, "too-large");
    world->config.upload.max_bytes = 1000;
    assert_status(world, asked, 201);
}

/* --- parameters --- */

/* Of a parameter that occurs twice, it is unclear which counts. */
IN_ZT1(malformed_parameters_are_refused)
{
    static const char *const rests[] = {
        DATA "?dtype=u8&shape=x",
        DATA "?dtype=u8&shape=1,,2",
        DATA "?dtype=u8&shape=1,",
        DATA "?dtype=u8&shape=,1",
        DATA "?dtype=u8&shape=-1",
        DATA "?dtype=u8&shape=%201",
        DATA "?dtype=u8&shape=1.0",
        DATA "?dtype=u8&shape=0x1",
        DATA "?dtype=u8",
        DATA "?dtype=u8&shape=18446744073709551616",
        DATA "?dtype=u8&shape=4294967296,4294967296,2",
        ONE "&encoding=gzip",
        ONE "&encoding=",
        ONE "&encoding=zstd&level=0",
        ONE "&encoding=zstd&level=20",
        ONE "&encoding=zstd&level=-1",
        ONE "&encoding=zstd&level=",
        ONE "&encoding=zstd&level=4294967297",
        ONE "&encoding=raw&level=3",
        ONE "&digest=sha256:12",
        ONE "&digest=md5:00000000000000000000000000000000",
        ONE "&digest=sha256:"
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ONE "&digest=sha256:"
            "00000000000000000000000000000000000000000000000000000000000000000",
        ONE "&dtype=u8",
        ONE "&shape=1",
        ONE "&type=u8&type=u8",
        ONE "&level=1&level=1",
        ONE "&digest=&digest=x",
        ONE "&encoding=raw&encoding=raw",
        DATA "?dtype=u8&shape=%zz",
        DATA "?dtype=%&shape=1",
    };

    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++)
        assert_refused(world, put(rests[i], 1), 400, "invalid-request");
    assert_status_holds(world, target, NO_OBJECTS);
}

IN_ZT1(every_level_from_1_to_19_is_taken)
{
    char rest[80];

    for (int level = 1; level <= 19; level += 9) {
        snprintf(rest, sizeof(rest), DATA "?dtype=u8&shape=1&encoding=zstd&level=%d", level);
        assert_status(world, put(rest, 1), 201);
    }
}

IN_ZT1(fields_of_a_part_or_of_no_digest_are_refused)
{
    static const char *const fields[][2] = {{"Content-Range", "bytes 0-0/2"},
                                            {"Content-Digest", "sha-256=x"},
                                            {"Repr-Digest", "sha-256=x"}};

    for (size_t i = 0; i < 3; i++)
        assert_refused(world, with_field(put(ONE, 1), fields[i][0], fields[i][1]), 400,
                       "invalid-request");
}

/* --- shape and type --- */

struct kind {
    const char *query;
    size_t length;
};

/* Each with its own length, and refused with one byte more and one less. */
static void assert_lengths(struct world *world, const struct kind *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char rest[128];

        snprintf(rest, sizeof(rest), "/objects/k%zu/data?%s", i, kinds[i].query);
        assert_refused(world, put(rest, kinds[i].length + 1), 422, "size-mismatch");
        if (kinds[i].length > 0)
            assert_refused(world, put(rest, kinds[i].length - 1), 422, "size-mismatch");
        assert_status(world, put(rest, kinds[i].length), 201);
    }
}

IN_ZT1(length_follows_from_shape_and_type)
{
    static const struct kind kinds[] = {
        {"dtype=u8&shape=", 1},       {"dtype=u8&shape=0", 0},     {"dtype=u8&shape=3,0,2", 0},
        {"dtype=i8&shape=7", 7},      {"dtype=bool&shape=3", 3},   {"dtype=f16&shape=2,3", 12},
        {"dtype=bf16&shape=2,3", 12}, {"dtype=f32&shape=2,3", 24}, {"dtype=i32&shape=1,1,1", 4},
        {"dtype=f64&shape=5", 40},    {"dtype=u64&shape=2,2", 32}, {"dtype=u16&shape=9", 18},
    };

    assert_lengths(world, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

#define IN_ZT2(name) TEST_IN_WORLD(name, set_up_zt2, uploads_tear_down)

IN_ZT2(length_follows_from_shape_and_type_in_zt2)
{
    static const struct kind kinds[] = {
        {"dtype=u8&shape=", 1},
        {"dtype=u8&type=bool&shape=5", 5},
        {"dtype=bf16&shape=2,3", 12},
        {"dtype=f64&shape=2", 16},
    };

    assert_lengths(world, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

IN_ZT1(unknown_types_are_refused)
{
    static const char *const rests[] = {
        DATA "?dtype=&shape=1",
        DATA "?dtype=float32&shape=1",
        DATA "?dtype=F32&shape=1",
        DATA "?dtype=u8&type=nothing&shape=1",
    };

    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++)
        assert_refused(world, put(rests[i], 1), 422, "unknown-dtype");
}

IN_ZT2(booleans_are_stored_as_u8_in_zt2)
{
    assert_status(world, put(DATA "?dtype=bool&shape=1", 1), 201);
    assert_status_holds(world, target, "\"dtype\":\"u8\",\"type\":\"bool\"");
    assert_refused(world, put(DATA "?dtype=f32&type=bool&shape=1", 4), 422, "unknown-dtype");
}

IN_ZT1(sizes_beyond_64_bits_are_refused)
{
    assert_refused(world, put(DATA "?dtype=f64&shape=4611686018427387904", 1), 422,
                   "size-mismatch");
}

/* --- against the declaration --- */

IN_ZT1(declared_shape_is_that_of_dense_data)
{
    assert_status(world, writer_declare(target, "/objects/a", "{\"shape\": [2, 3]}"), 201);
    assert_refused(world, put(DATA "?dtype=u8&shape=6", 6), 422, "size-mismatch");
    assert_refused(world, put(DATA "?dtype=u8&shape=3,2", 6), 422, "size-mismatch");
    assert_refused(world, put(DATA "?dtype=u8", 5), 422, "size-mismatch");
    assert_refused(world, put(DATA "?dtype=u8&shape=x", 6), 400, "invalid-request");
    assert_status(world, put(DATA "?dtype=u8", 6), 201);
    assert_status_holds(world, target, "\"shape\":[2,3],\"encoding\":\"raw\"");
}

IN_ZT1(indices_of_sparse_objects_are_u64)
{
    assert_status(
        world,
        writer_declare(target, "/objects/s", "{\"shape\": [2, 3], \"format\": \"sparse_csr\"}"),
        201);
    assert_refused(world, put("/objects/s/indices?dtype=u32&shape=2", 8), 422, "invalid-model");
    assert_status(world, put("/objects/s/indices?dtype=u64&shape=2", 16), 201);
}

IN_ZT2(names_are_bounded_in_zt2)
{
    char path[1200];
    size_t at = (size_t)snprintf(path, sizeof(path), "%s/objects/a/", target);

    memset(path + at, 'n', 1025);
    strcpy(path + at + 1025, "?dtype=u8&shape=1");
    assert_refused(world, with_body(to_ask("PUT", path), "x", 1), 400, "invalid-name");
    strcpy(path + at + 1024, "?dtype=u8&shape=1");
    assert_status(world, with_body(to_ask("PUT", path), "x", 1), 201);
}

/* --- space --- */

IN_ZT1(component_beyond_the_limit_or_the_disk_is_refused)
{
    struct asked asked = put(DATA "?dtype=u8&shape=1152921504606846976", 1);

    asked.chunked = true;
    assert_refused(world, asked, 413, "too-large");
    world->config.upload.max_bytes = INT64_MAX;
    assert_refused(world, asked, 507, "insufficient-storage");
    assert_status_holds(world, target, NO_OBJECTS);
}

IN_ZT1(components_of_one_upload_share_the_limit)
{
    world->config.upload.max_bytes = 1000;
    assert_status(world, put("/objects/a/data?dtype=u8&shape=600", 600), 201);
    assert_refused(world, put("/objects/b/data?dtype=u8&shape=600", 600), 413, "too-large");
    assert_status_holds(world, target, "\"received\":600");
}

/* What a commit does to the file between the request's header and its body. */
IN_ZT1(a_file_that_was_published_meanwhile_is_a_conflict)
{
    struct store *store = world->server.store;
    const char *id = strrchr(target, '/') + 1;
    struct zt_error error;

    assert_ok(staging_folder_remove(store->staging, id, WRITER_DATA, &error));
    assert_refused(world, put(DATA "?dtype=u8&shape=8", 8), 409, "conflict");
}
