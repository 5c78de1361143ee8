/* Slices as sources: small ones at every position, large ones across windows, failures. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sources.h"
#include "zt/slice.h"

/* Where the tensor's bytes begin in its source. */
#define BASE 24

static void parse(const struct zt_slice_tensor *tensor, const char *text,
                  struct zt_slice *out_slice)
{
    assert_int_equal(zt_slice_parse(tensor, zt_text_from(text), out_slice, NULL), ZT_SLICE_FITS);
}

static uint8_t *make_bytes(size_t length)
{
    uint8_t *bytes = malloc(length + 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(i * 7 ^ i >> 8 ^ i >> 13);
    return bytes;
}

/* Copies the slice's bytes run by run. */
static void copy_loops(const struct zt_slice *slice, unsigned loop, const uint8_t *from,
                       uint8_t **to)
{
    if (loop == slice->loop_count) {
        memcpy(*to, from, slice->run_bytes);
        *to += slice->run_bytes;
        return;
    }
    for (uint64_t i = 0; i < slice->loops[loop].count; i++)
        copy_loops(slice, loop + 1, from + i * slice->loops[loop].stride_bytes, to);
}

static uint8_t *expect(const struct zt_slice *slice, const uint8_t *tensor)
{
    uint8_t *expected = malloc(slice->length + 1);
    uint8_t *to = expected;

    assert_non_null(expected);
    copy_loops(slice, 0, tensor + slice->offset, &to);
    assert_true((size_t)(to - expected) == slice->length);
    return expected;
}

static void assert_reads(struct zt_source *source, const uint8_t *expected, uint64_t offset,
                         size_t length)
{
    /* Of the exact size, so that a sanitizer detects one byte too many. */
    uint8_t *got = malloc(length + 1);

    assert_non_null(got);
    got[length] = 0x5A;
    assert_ok(zt_source_read_at(source, offset, got, length, NULL));
    assert_memory_equal(got, expected + offset, length);
    assert_int_equal(got[length], 0x5A);
    free(got);
}

/* --- small slices --- */

static void assert_every_read(const struct zt_slice_tensor *tensor, const char *text,
                              struct zt_source *whole, const uint8_t *bytes)
{
    struct zt_slice slice;
    struct zt_source *source = NULL;
    uint8_t *expected;

    parse(tensor, text, &slice);
    expected = expect(&slice, bytes + BASE);
    assert_ok(zt_slice_source(&slice, whole, BASE, &source, NULL));
    assert_true(zt_source_size(source) == slice.length);
    assert_null(zt_source_map(source));
    assert_int_equal(zt_source_descriptor(source), -1);
    for (uint64_t offset = 0; offset <= slice.length; offset++)
        for (size_t length = 0; length <= slice.length - offset; length++)
            assert_reads(source, expected, offset, length);
    zt_source_close(source);
    free(expected);
}

TEST(reads_are_right_at_every_position_and_length)
{
    static const uint64_t shape[] = {4, 3, 2, 4};
    static const struct {
        enum zt_dtype dtype;
        enum zt_logical logical;
    } types[] = {{ZT_U8, ZT_LOGICAL_NONE},       {ZT_F16, ZT_LOGICAL_NONE},
                 {ZT_F32, ZT_LOGICAL_NONE},      {ZT_I64, ZT_LOGICAL_NONE},
                 {ZT_F32, ZT_LOGICAL_COMPLEX64}, {ZT_F64, ZT_LOGICAL_COMPLEX128},
                 {ZT_U8, ZT_LOGICAL_F4_E2M1}};
    static const char *const texts[] = {
        "...",    "1:3",         "0:0",    "2,1,0,2:4", ":,1",         ":,:,1",
        ":,1:,1", "1:3,:2,:,:2", "...,2:", ":,:,:,:2",  "-2:,0,:,-2:", "...,0:2",
    };
    uint8_t *bytes = make_bytes(BASE + 96 * 16 + 5);
    struct zt_source *whole;

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        const struct zt_slice_tensor tensor = {shape, 4, types[i].dtype, types[i].logical};
        uint64_t length;

        assert_ok(zt_element_bytes(tensor.dtype, tensor.logical, 96, &length));
        /* Exactly as long as the tensor: reading ahead must stop at its end. */
        whole = memory_source(bytes, BASE + (size_t)length);
        for (size_t j = 0; j < sizeof(texts) / sizeof(*texts); j++)
            assert_every_read(&tensor, texts[j], whole, bytes);
        if (zt_element_bits(tensor.dtype, tensor.logical) >= 8)
            assert_every_read(&tensor, ":,1:,:,1:4", whole, bytes);
        zt_source_close(whole);
    }
    free(bytes);
}

/* --- slices larger than a window, with near and far neighbours --- */

/* Reads everything in steps, as a sender does. */
static void assert_steps(struct zt_source *source, const uint8_t *expected, size_t step)
{
    uint64_t length = zt_source_size(source);

    for (uint64_t offset = 0; offset < length; offset += step)
        assert_reads(source, expected, offset,
                     length - offset < step ? (size_t)(length - offset) : step);
}

/* Gathers a piece through the list of its runs, a few at a time. */
static void assert_runs(const struct zt_source *source, const uint8_t *bytes,
                        const uint8_t *expected, uint64_t offset, uint64_t length)
{
    const uint64_t end = offset + length;
    struct zt_slice_run runs[5];

    while (offset < end) {
        const size_t count = zt_slice_source_runs(source, offset, end - offset, runs, 5);

        assert_in_range(count, 1, 5);
        for (size_t i = 0; i < count; i++) {
            assert_true(runs[i].length > 0 && runs[i].length <= end - offset);
            assert_memory_equal(bytes + runs[i].offset, expected + offset, runs[i].length);
            offset += runs[i].length;
        }
    }
    assert_true(offset == end);
}

/* The extents hold every run, and begin and end with one. */
static void assert_extents(const struct zt_source *source, uint64_t offset, uint64_t length)
{
    const uint64_t end = offset + length;
    struct zt_slice_run extents[3];
    struct zt_slice_run run;

    while (offset < end) {
        uint64_t left;
        const size_t count =
            zt_slice_source_extents(source, offset, end - offset, extents, 3, &left);

        assert_true(count > 0 && left > 0 && left <= end - offset);
        for (size_t i = 0; i < count; i++) {
            const uint64_t last = extents[i].offset + extents[i].length;
            uint64_t at = extents[i].offset;

            for (uint64_t run_end = at; left > 0 && run_end < last; run_end = at + run.length) {
                zt_slice_source_runs(source, offset, left, &run, 1);
                assert_true(run_end == at ? run.offset == at : run.offset >= run_end);
                at = run.offset;
                offset += run.length;
                left -= run.length;
            }
            assert_true(at + run.length == last);
        }
        assert_true(left == 0);
    }
}

static void assert_listed(const struct zt_source *source, const uint8_t *bytes,
                          const uint8_t *expected)
{
    const uint64_t length = zt_source_size(source);
    struct zt_source *tensor = NULL;

    assert_true(zt_slice_of_source(source, &tensor)->length == length);
    assert_non_null(tensor);
    assert_null(zt_slice_of_source(tensor, &tensor));
    assert_runs(source, bytes, expected, 0, length);
    assert_extents(source, 0, length);
    for (uint64_t offset = 1; offset < length; offset = offset * 3 + 1) {
        const uint64_t piece = length - offset < 5000 ? length - offset : 5000;

        assert_runs(source, bytes, expected, offset, piece);
        assert_extents(source, offset, piece);
        assert_extents(source, offset, 1);
    }
}

TEST(slices_across_windows_read_right)
{
    static const struct {
        uint64_t shape[3];
        const char *text;
    } cases[] = {{{1000, 100, 10}, ":,:,3"},          {{1000, 100, 10}, ":,7:9,:"},
                 {{1000, 100, 10}, "1:999,1:99,1:9"}, {{1000, 100, 10}, ":,5,5"},
                 {{1000, 100, 10}, ":,3:90,2"},       {{10, 2, 50000}, ":,1,:40000"},
                 {{10, 2, 50000}, ":,1,100:5100"},    {{100, 10, 1000}, ":,2:8,10:900"},
                 {{100, 10, 1000}, ":,9,990:"},       {{2, 500000, 1}, ":,1:499999"},
                 {{500000, 1, 2}, ":,:,1"},           {{20, 5, 8192}, ":,1:4,:7"},
                 {{20, 5, 8192}, ":,:,4095:8191"},    {{20, 5, 8192}, ":,1:,1:8000"},
                 {{7, 11, 12289}, ":,3:9,4096:12289"}};
    uint8_t *bytes = make_bytes(BASE + 1000000);
    struct zt_source *whole = memory_source(bytes, BASE + 1000000);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct zt_slice_tensor tensor = {cases[i].shape, 3, ZT_U8, ZT_LOGICAL_NONE};
        struct zt_slice slice;
        struct zt_source *source;
        uint8_t *expected;

        parse(&tensor, cases[i].text, &slice);
        expected = expect(&slice, bytes + BASE);
        assert_ok(zt_slice_source(&slice, whole, BASE, &source, NULL));
        assert_reads(source, expected, 0, (size_t)slice.length);
        assert_steps(source, expected, 65536);
        assert_steps(source, expected, 4099);
        assert_steps(source, expected, 333);
        assert_listed(source, bytes, expected);
        zt_source_close(source);
        free(expected);
    }
    zt_source_close(whole);
    free(bytes);
}

/* --- how much of the tensor is read --- */

static void count_over(struct counting_source *counting, const uint8_t *bytes, size_t length)
{
    *counting = (struct counting_source){.base = {&counting_source_ops},
                                         .inner = memory_source(bytes, length)};
}

static void assert_cost(const uint64_t *shape, const char *text, uint64_t reads, uint64_t bytes)
{
    const struct zt_slice_tensor tensor = {shape, 3, ZT_U8, ZT_LOGICAL_NONE};
    size_t size = (size_t)(shape[0] * shape[1] * shape[2]);
    uint8_t *data = make_bytes(size);
    struct counting_source counting;
    struct zt_slice slice;
    struct zt_source *source;
    uint8_t *got;

    count_over(&counting, data, size);
    parse(&tensor, text, &slice);
    assert_ok(zt_slice_source(&slice, &counting.base, 0, &source, NULL));
    got = malloc(slice.length);
    assert_non_null(got);
    assert_ok(zt_source_read_at(source, 0, got, (size_t)slice.length, NULL));
    if (counting.reads > reads || counting.bytes > bytes)
        fail_msg("%s takes %d reads of %d bytes", text, (int)counting.reads, (int)counting.bytes);
    free(got);
    zt_source_close(source);
    zt_source_close(counting.inner);
    free(data);
}

TEST(near_runs_are_read_together_and_far_ones_alone)
{
    static const uint64_t near[] = {100000, 8, 1}, far[] = {100, 10000, 1},
                          large[] = {4, 200000, 1}, clusters[] = {4, 400, 512};

    /* A window at a time, and nothing after the last run. */
    assert_cost(near, ":,:4", 800000 / 65536 + 1, 800000 + 13 * 8);
    assert_cost(near, ":10,:4", 1, 76);
    assert_cost(far, ":,:16", 100, 1600);
    assert_cost(large, ":,:150000", 4, 600000);
    assert_cost(large, "1:3", 1, 400000);
    /* The bytes between two passes over near runs are not read. */
    assert_cost(clusters, ":,:150,:16", 8, (uint64_t)4 * (149 * 512 + 16));
}

TEST(reading_past_the_end_fails)
{
    static const uint64_t shape[] = {4, 3};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    uint8_t *bytes = make_bytes(12);
    uint8_t got[8];
    struct counting_source counting;
    struct zt_slice slice;
    struct zt_source *source;
    struct zt_error error;

    count_over(&counting, bytes, 12);
    parse(&tensor, ":,:2", &slice);
    assert_ok(zt_slice_source(&slice, &counting.base, 0, &source, NULL));
    assert_int_equal(zt_source_read_at(source, 1, got, 8, &error), ZT_IO);
    assert_int_equal(zt_source_read_at(source, 9, got, 0, &error), ZT_IO);
    assert_int_equal(zt_source_read_at(source, UINT64_MAX, got, 2, &error), ZT_IO);
    assert_ok(zt_source_read_at(source, 8, got, 0, &error));
    assert_int_equal(counting.reads, 0);
    /* Errors of the tensor's source are passed on, from windows and from single runs. */
    counting.failing_from = 8;
    assert_int_equal(zt_source_read_at(source, 0, got, 8, &error), ZT_IO);
    assert_string_equal(error.message, "no more");
    assert_int_equal(zt_source_read_at(source, 7, got, 1, &error), ZT_IO);
    assert_ok(zt_source_read_at(source, 0, got, 4, &error));
    zt_source_close(source);
    zt_source_close(counting.inner);
    free(bytes);
}

/* The file was mapped when it was complete: touching the mapping now would end the process. */
TEST(file_cut_short_fails_without_a_signal)
{
    static const uint64_t shape[] = {1000, 1000};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    char path[] = "/tmp/slice-XXXXXX";
    int descriptor = mkstemp(path);
    struct zt_source *whole, *source;
    struct zt_slice slice;
    uint8_t *got = malloc(10000);
    struct zt_error error;

    assert_non_null(got);
    assert_true(descriptor >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ftruncate(descriptor, 1000000), 0);
    assert_ok(zt_source_from_descriptor(descriptor, &whole, NULL));
    assert_non_null(zt_source_map(whole));
    parse(&tensor, ":,:10", &slice);
    assert_ok(zt_slice_source(&slice, whole, 0, &source, NULL));
    assert_ok(zt_source_read_at(source, 0, got, 10000, NULL));
    assert_int_equal(ftruncate(descriptor, 5000), 0);
    assert_int_equal(zt_source_read_at(source, 0, got, 10000, &error), ZT_IO);
    zt_source_close(source);
    zt_source_close(whole);
    free(got);
}
