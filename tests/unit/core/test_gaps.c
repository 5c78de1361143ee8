/* Gaps: which ranges are reported, which of them are padding, and bytes of padding that are not
 * zero. */
#include "tests.h"

#include <string.h>

#include "container.h"
#include "gguf_file.h"
#include "zt/gaps.h"
#include "zt2_file.h"

#define GAPS_MAX 8

struct found_gaps {
    struct zt_gap gaps[GAPS_MAX];
    unsigned count;
};

static struct found_gaps found;
static struct zt_error error;

static void take(void *context, const struct zt_gap *gap)
{
    struct found_gaps *into = context;

    assert_true(into->count < GAPS_MAX);
    into->gaps[into->count++] = *gap;
}

static enum zt_status walk(const struct zt_model *model, const uint8_t *bytes, size_t length)
{
    struct zt_source *source = NULL;
    enum zt_status status;

    found.count = 0;
    zt_error_clear(&error);
    source = memory_source(bytes, length);
    status = zt_gaps_walk(model, source, take, &found, &error);
    zt_source_close(source);
    return status;
}

static void assert_gap(unsigned number, uint64_t offset, uint64_t length, bool is_padding,
                       uint64_t dirty_at)
{
    const struct zt_gap *gap;

    assert_true(number < found.count);
    gap = &found.gaps[number];
    assert_true(gap->offset == offset);
    assert_true(gap->length == length);
    assert_int_equal(gap->is_padding, is_padding);
    assert_true(gap->dirty_at == dirty_at);
}

/* --- zTensor 2 --- */

static struct zt2_file file;

static void walk_zt2(const char *manifest, uint64_t dirty_at)
{
    struct zt_model *model = NULL;

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    if (dirty_at != ZT_NO_OFFSET)
        file.bytes[dirty_at] = 1;
    assert_ok(zt2_file_open(&file, &model, &error));
    assert_ok(walk(model, file.bytes, file.length));
    zt_model_free(model);
    zt2_file_free(&file);
}

#define PLACED(name, place) "'" name "':{'parts':{'data':{'blob':" place ",'dtype':'u8'}},"
#define OF_EIGHT            "'shape':[8],'layout':'dense'}"
#define OF_4096             "'shape':[4096],'layout':'dense'}"

TEST(walk_reports_padding_before_aligned_ranges)
{
    walk_zt2("{'objects':{" PLACED("a", "[12288,8]") OF_EIGHT "," PLACED("b", "[4096,4096]") OF_4096
             "," PLACED("c", "[8192,4096]") OF_4096 "}}",
             ZT_NO_OFFSET);
    assert_int_equal(found.count, 2);
    assert_gap(0, 8, 4088, true, ZT_NO_OFFSET);
    assert_gap(1, 12296, 4088, true, ZT_NO_OFFSET);
}

TEST(walk_finds_the_first_byte_of_padding_that_is_not_zero)
{
    walk_zt2("{'objects':{" PLACED("a", "[12288,8]") OF_EIGHT "," PLACED("b", "[4096,4096]") OF_4096
             "," PLACED("c", "[8192,4096]") OF_4096 "}}",
             ZT2_MANIFEST_AT - 1);
    assert_int_equal(found.count, 2);
    assert_gap(0, 8, 4088, true, ZT_NO_OFFSET);
    assert_gap(1, 12296, 4088, true, ZT2_MANIFEST_AT - 1);
}

TEST(walk_reports_bytes_that_no_object_refers_to)
{
    walk_zt2("{'objects':{" PLACED("a", "[4096,8]") OF_EIGHT "}}", 8192);
    assert_int_equal(found.count, 2);
    assert_gap(1, 4104, ZT2_MANIFEST_AT - 4104, false, ZT_NO_OFFSET);
}

TEST(walk_takes_a_shared_blob_once)
{
    walk_zt2("{'objects':{" PLACED("a", "[12288,8]") OF_EIGHT "," PLACED("b", "[12288,8]") OF_EIGHT
             "}}",
             ZT_NO_OFFSET);
    assert_int_equal(found.count, 2);
    assert_gap(0, 8, 12280, false, ZT_NO_OFFSET);
    assert_gap(1, 12296, 4088, true, ZT_NO_OFFSET);
}

TEST(walk_ignores_ranges_in_shards)
{
    walk_zt2("{'shards':{'s':{'size':9000,'digest':'sha256:00'}},'objects':{'a':{'parts':{'data':{'"
             "blob':[4096,8],'dtype':'u8','shard':'s'}}," OF_EIGHT "}}",
             ZT_NO_OFFSET);
    assert_int_equal(found.count, 1);
    assert_gap(0, 8, ZT2_MANIFEST_AT - 8, false, ZT_NO_OFFSET);
}

TEST(walk_reports_padding_that_cannot_be_read)
{
    struct zt_model *model = NULL;

    zt2_file_make(&file, ZT2_MANIFEST_AT, "{'objects':{" PLACED("a", "[4096,8]") OF_EIGHT "}}");
    assert_ok(zt2_file_open(&file, &model, &error));
    assert_int_equal(walk(model, file.bytes, 100), ZT_IO);
    assert_int_equal(error.status, ZT_IO);
    assert_int_equal(found.count, 0);
    zt_model_free(model);
    zt2_file_free(&file);
}

/* --- zTensor 0.1 and 1.x, GGUF --- */

static void walk_container(const struct container *container)
{
    struct zt_model *model = NULL;

    assert_ok(container_open(container, container->length, &model, &error));
    assert_ok(walk(model, container->bytes, container->length));
    zt_model_free(model);
}

TEST(walk_reports_bytes_before_a_version_1_manifest)
{
    static const char manifest[] =
        "{'version':'1.2.0','objects':{'a':{'shape':[8],'format':'dense','components':{'data':{'"
        "dtype':'u8','offset':64,'length':8,'encoding':'raw'}}}}}";
    struct container container = {0};

    container_make(&container, CONTAINER_ZT1, 8, manifest);
    container.bytes[63] = 0xab;
    walk_container(&container);
    assert_int_equal(found.count, 1);
    assert_gap(0, 8, 56, true, 63);
    container_make(&container, CONTAINER_ZT1, 11, manifest);
    walk_container(&container);
    assert_int_equal(found.count, 2);
    assert_gap(1, 72, 3, false, ZT_NO_OFFSET);
    container_free(&container);
}

/* A tensor of 24 bytes, of which data_length are in the file. */
static void walk_gguf(unsigned alignment, size_t data_length)
{
    struct gguf_file made = {0};
    struct container container = {0};

    gguf_begin(&made);
    if (alignment != 32) {
        gguf_put_key(&made, "general.alignment", 4);
        gguf_put(&made, alignment, 4);
    }
    gguf_put_tensor(&made, "w", 1, (const uint64_t[1]){6}, 0);
    gguf_put_offset(&made, 0);
    gguf_finish(&made, alignment, data_length, &container);
    walk_container(&container);
    container_free(&container);
}

TEST(walk_uses_the_alignment_of_a_gguf_file)
{
    walk_gguf(32, 24);
    for (unsigned i = 0; i < found.count; i++)
        assert_true(found.gaps[i].is_padding);
    walk_gguf(32, 32);
    assert_true(found.gaps[found.count - 1].is_padding);
    assert_int_equal(found.gaps[found.count - 1].length, 8);
    walk_gguf(32, 64);
    assert_false(found.gaps[found.count - 1].is_padding);
    assert_int_equal(found.gaps[found.count - 1].length, 40);
    walk_gguf(64, 64);
    assert_true(found.gaps[found.count - 1].is_padding);
    assert_int_equal(found.gaps[found.count - 1].length, 40);
}
