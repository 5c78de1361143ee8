/* Reading from mappings: the same bytes as by read, and a file that is cut short is an error, not
 * the end of the program. cmocka handles SIGBUS itself from the start of each test, so each test
 * allows mapped reading again. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes/resident.h"
#include "check/hashing.h"
#include "zt/shards.h"
#include "zt/slice.h"
#include "zt/verify.h"

#define FILE_BYTES ((size_t)4 << 20)

struct file {
    int descriptor; /* of its own, to change the file */
    struct zt_source *source;
    uint8_t *bytes;
};

static int setup(void **state)
{
    static struct file file;
    char path[] = "/tmp/zt-resident-XXXXXX";

    file.bytes = malloc(FILE_BYTES);
    assert_non_null(file.bytes);
    for (size_t i = 0; i < FILE_BYTES; i++)
        file.bytes[i] = (uint8_t)(i * 7 ^ i >> 8 ^ i >> 16);
    file.descriptor = mkstemp(path);
    assert_true(file.descriptor >= 0);
    unlink(path);
    assert_true(pwrite(file.descriptor, file.bytes, FILE_BYTES, 0) == (ssize_t)FILE_BYTES);
    assert_ok(zt_source_from_descriptor(dup(file.descriptor), &file.source, NULL));
    *state = &file;
    return 0;
}

static int teardown(void **state)
{
    struct file *file = *state;

    zt_source_close(file->source);
    close(file->descriptor);
    free(file->bytes);
    return 0;
}

AROUND_EACH_TEST(setup, teardown)

/* What was written a moment ago is in the page cache. */
TEST_ON(struct file *file, a_written_file_is_resident)
{
    const uint8_t *bytes;

    zt_source_allow_mapped();
    bytes = zt_source_resident(file->source, 100, FILE_BYTES - 100);
    assert_non_null(bytes);
    assert_memory_equal(bytes, file->bytes + 100, FILE_BYTES - 100);
    assert_null(zt_source_resident(file->source, 1, FILE_BYTES));
    assert_null(zt_source_resident(file->source, FILE_BYTES + 1, 0));
}

static void read_byte(void *context)
{
    const volatile uint8_t *byte = context;

    (void)*byte;
}

static enum zt_status touch_byte(struct file *file, const uint8_t *mapping, uint64_t offset,
                                 struct zt_error *error)
{
    return zt_source_touch(file->source, offset, 1, read_byte,
                           (void *)(uintptr_t)(mapping + offset), error);
}

TEST_ON(struct file *file, touching_what_was_cut_off_fails_and_the_next_touch_succeeds)
{
    const uint8_t *bytes;

    zt_source_allow_mapped();
    bytes = zt_source_mapped(file->source, 0, FILE_BYTES);
    assert_int_equal(ftruncate(file->descriptor, 8192), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(touch_byte(file, bytes, FILE_BYTES - 1, NULL), ZT_IO);
        assert_ok(touch_byte(file, bytes, 8191, NULL));
    }
}

/* As when the disk fails within the bytes. */
TEST_ON(struct file *file, touching_a_missing_page_fails_although_the_last_byte_is_there)
{
    uint8_t *bytes;

    zt_source_allow_mapped();
    bytes = (uint8_t *)(uintptr_t)zt_source_mapped(file->source, 0, FILE_BYTES);
    assert_int_equal(ftruncate(file->descriptor, 8192), 0);
    assert_int_equal(
        zt_source_touch(file->source, 0, 8192, read_byte, bytes + FILE_BYTES - 1, NULL), ZT_IO);
}

/* The rest of the page can be touched, and is zeros. */
TEST_ON(struct file *file, touching_the_page_within_which_a_file_was_cut_off_fails_as_reading_does)
{
    struct zt_error by_touching;
    struct zt_error by_reading;
    const uint8_t *bytes;
    uint8_t all[100];

    zt_source_allow_mapped();
    bytes = zt_source_mapped(file->source, 0, FILE_BYTES);
    assert_int_equal(ftruncate(file->descriptor, 8192 - 50), 0);
    assert_int_equal(touch_byte(file, bytes, 8191, &by_touching), ZT_IO);
    assert_int_equal(zt_source_read_at(file->source, 8092, all, 100, &by_reading), ZT_IO);
    assert_string_equal(by_touching.message, "the file was truncated to 8142 bytes");
    assert_string_equal(by_reading.message, by_touching.message);
    assert_true(by_touching.offset == 8142 && by_reading.offset == 8142);
    assert_ok(touch_byte(file, bytes, 8192 - 51, NULL));
}

static enum zt_status hash(struct zt_source *source, enum zt_digest_algorithm algorithm,
                           uint64_t offset, uint64_t length, struct zt_digest *out_digest)
{
    struct zt_hashing hashing = {.source = source};
    enum zt_status status = zt_hashing_start(&hashing, algorithm, 4096, NULL);

    assert_ok(status);
    status = zt_hashing_run(&hashing, offset, length, NULL);
    if (status == ZT_OK)
        zt_hasher_finish(hashing.hasher, out_digest);
    zt_hashing_free(&hashing);
    return status;
}

TEST_ON(struct file *file, a_digest_from_the_mapping_is_that_of_the_bytes)
{
    static const enum zt_digest_algorithm algorithms[] = {ZT_DIGEST_SHA256, ZT_DIGEST_XXH3,
                                                          ZT_DIGEST_CRC32C};
    static const uint64_t lengths[] = {0, 1, 131071, 131072, 1 << 20, (1 << 20) + 1, 3000001};

    zt_source_allow_mapped();
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
            struct zt_hasher *hasher;
            struct zt_digest expected;
            struct zt_digest got;

            assert_ok(zt_hasher_new(algorithms[i], &hasher));
            zt_hasher_update(hasher, file->bytes + 77, (size_t)lengths[j]);
            zt_hasher_finish(hasher, &expected);
            zt_hasher_free(hasher);
            assert_ok(hash(file->source, algorithms[i], 77, lengths[j], &got));
            assert_true(zt_digest_equal(&got, &expected));
        }
}

TEST_ON(struct file *file, hashing_a_file_that_was_cut_short_is_an_error)
{
    struct zt_digest digest;

    zt_source_allow_mapped();
    assert_non_null(zt_source_map(file->source));
    assert_int_equal(ftruncate(file->descriptor, FILE_BYTES / 2), 0);
    assert_int_equal(hash(file->source, ZT_DIGEST_SHA256, 0, FILE_BYTES, &digest), ZT_IO);
    assert_ok(hash(file->source, ZT_DIGEST_SHA256, 0, FILE_BYTES / 2, &digest));
}

/* Every page of what is hashed is still there, so all of it is taken from the mapping. */
TEST_ON(struct file *file, hashing_a_file_that_was_cut_short_within_a_page_is_an_error)
{
    struct zt_digest digest;

    zt_source_allow_mapped();
    assert_non_null(zt_source_map(file->source));
    assert_int_equal(ftruncate(file->descriptor, FILE_BYTES - 1), 0);
    assert_non_null(zt_source_resident(file->source, 0, FILE_BYTES));
    assert_int_equal(hash(file->source, ZT_DIGEST_SHA256, 0, FILE_BYTES, &digest), ZT_IO);
    assert_ok(hash(file->source, ZT_DIGEST_SHA256, 0, FILE_BYTES - 1, &digest));
}

static struct zt_component whole_file(struct file *file, char text[ZT_DIGEST_TEXT_SIZE])
{
    struct zt_digest digest;

    assert_ok(hash(file->source, ZT_DIGEST_SHA256, 0, FILE_BYTES, &digest));
    zt_digest_format(&digest, text);
    return (struct zt_component){.name = "data",
                                 .name_length = 4,
                                 .encoding_name = "raw",
                                 .encoding_length = 3,
                                 .digest = text,
                                 .digest_length = (uint32_t)strlen(text),
                                 .length = FILE_BYTES,
                                 .decoded_length = FILE_BYTES,
                                 .dtype = ZT_U8};
}

/* Its bytes are not corrupt, they are not there: callers remember a verdict. */
TEST_ON(struct file *file, a_file_that_was_cut_short_within_a_page_has_no_verdict)
{
    const struct zt_model model = {.format = ZT_FORMAT_ZT2};
    struct zt_component_check check = {.verdict = ZT_VERDICT_UNSUPPORTED};
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_component component = whole_file(file, text);

    zt_source_allow_mapped();
    assert_ok(zt_component_check(&model, &component, file->source, NULL, &check, NULL));
    assert_int_equal(check.verdict, ZT_VERDICT_VERIFIED);
    check.verdict = ZT_VERDICT_UNSUPPORTED;
    assert_int_equal(ftruncate(file->descriptor, FILE_BYTES - 1), 0);
    assert_int_equal(zt_component_check(&model, &component, file->source, NULL, &check, NULL),
                     ZT_IO);
    assert_int_equal(check.verdict, ZT_VERDICT_UNSUPPORTED);
}

TEST_ON(struct file *file, a_shard_that_was_cut_short_within_a_page_is_not_called_corrupt)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    const struct zt_component whole = whole_file(file, text);
    const struct zt_shard shard = {.name = "shard",
                                   .name_length = 5,
                                   .digest = whole.digest,
                                   .digest_length = whole.digest_length};

    zt_source_allow_mapped();
    assert_ok(zt_shard_check_digest(&shard, file->source, NULL, NULL));
    assert_int_equal(ftruncate(file->descriptor, FILE_BYTES - 1), 0);
    assert_int_equal(zt_shard_check_digest(&shard, file->source, NULL, NULL), ZT_IO);
}

/* Of a tensor of 1023 rows of 4096 bytes, from base on. */
static void open_slice(struct file *file, const char *text, uint64_t base,
                       struct zt_slice *out_slice, struct zt_source **out_source)
{
    const uint64_t shape[] = {1023, 4096};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};

    zt_source_allow_mapped();
    assert_int_equal(zt_slice_parse(&tensor, zt_text_from(text), out_slice, NULL), ZT_SLICE_FITS);
    assert_ok(zt_slice_source(out_slice, file->source, base, out_source, NULL));
}

TEST_ON(struct file *file, a_slice_from_the_mapping_has_its_bytes)
{
    struct zt_source *source;
    struct zt_slice slice;
    uint8_t *got;

    open_slice(file, ":,100:613", 0, &slice, &source);
    got = malloc(slice.length);
    assert_non_null(got);
    for (uint64_t offset = 0; offset < slice.length; offset += 70001) {
        const size_t length =
            slice.length - offset < 200003 ? (size_t)(slice.length - offset) : 200003;

        assert_ok(zt_source_read_at(source, offset, got, length, NULL));
        for (size_t i = 0; i < length; i++)
            assert_int_equal(got[i],
                             file->bytes[(offset + i) / 513 * 4096 + 100 + (offset + i) % 513]);
    }
    free(got);
    zt_source_close(source);
}

static void expect_slice(struct file *file, const char *text, uint64_t base,
                         enum zt_status expected)
{
    struct zt_source *source;
    struct zt_slice slice;
    uint8_t *got;

    open_slice(file, text, base, &slice, &source);
    got = malloc(slice.length);
    assert_non_null(got);
    assert_int_equal(zt_source_read_at(source, 0, got, (size_t)slice.length, NULL), expected);
    free(got);
    zt_source_close(source);
}

/* All that is missing is the last byte, the first of its page. The runs that are looked up in the
 * page cache end a few bytes before it, so copying meets the missing page. */
TEST_ON(struct file *file, a_slice_of_a_file_that_was_cut_short_is_an_error)
{
    const uint64_t base = 4096 - 612;

    expect_slice(file, ":,100:613", base, ZT_OK);
    assert_int_equal(ftruncate(file->descriptor, 1023 * 4096), 0);
    expect_slice(file, ":,100:613", base, ZT_IO);
    expect_slice(file, ":,100:612", base, ZT_OK);
}

/* Nothing that is copied is missing from the mapping. */
TEST_ON(struct file *file, a_slice_of_a_file_that_was_cut_short_within_a_page_is_an_error)
{
    expect_slice(file, ":,100:613", 0, ZT_OK);
    assert_int_equal(ftruncate(file->descriptor, 1022 * 4096 + 612), 0);
    expect_slice(file, ":,100:613", 0, ZT_IO);
    expect_slice(file, ":,100:612", 0, ZT_OK);
}
