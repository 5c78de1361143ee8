/* Running out of memory: each allocation of decoding and checking fails once, and nothing is
 * leaked.
 *
 * The C library's allocator is replaced in this program, so it tests nothing under sanitizers,
 * which do the same. */
#include "support.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "allocation.h"
#include "handmade.h"
#include "zt/slice.h"
#include "zt/verify.h"

/* More allocations than any call makes. */
#define CALLS_MAX 200

static enum zt_status check_digest(struct handmade *made)
{
    struct zt_component_check result;
    struct zt_error error;

    return zt_component_check(&made->model, &made->parts[0], made->source, NULL, &result, &error);
}

static enum zt_status check_content(struct handmade *made)
{
    const struct zt_files files = {made->source, NULL};
    struct zt_error error;

    return zt_object_check(&made->model, &made->object, &files, &error);
}

static enum zt_status read_frames(struct handmade *made)
{
    struct zt_frames frames;
    struct zt_error error;
    uint8_t out[4096];
    enum zt_status status = zt_frames_read(&made->parts[0], made->source, &frames, &error);

    if (status != ZT_OK)
        return status;
    status = zt_frame_decode(&frames.frames[0], made->source, out, &error);
    zt_frames_free(&frames);
    return status;
}

/* Reads a whole frame and then a part of one, which is kept. */
static enum zt_status read_frames_source(struct handmade *made)
{
    struct zt_source *source;
    struct zt_error error;
    uint8_t out[4096];
    enum zt_status status = zt_frames_source(&made->parts[0], made->source, &source, &error);

    if (status != ZT_OK)
        return status;
    status = zt_source_read_at(source, 0, out, sizeof(out), &error);
    if (status == ZT_OK)
        status = zt_source_read_at(source, 5000, out, 100, &error);
    zt_source_close(source);
    return status;
}

static enum zt_status read_slice(struct handmade *made)
{
    static const uint64_t shape[] = {64, 16};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    struct zt_slice slice;
    struct zt_source *source;
    struct zt_error error;
    uint8_t out[128], *head;
    size_t length;
    enum zt_status status;

    if (zt_slice_parse(&tensor, (struct zt_text){":,3:5", 5}, &slice, &error) != ZT_SLICE_FITS)
        return ZT_ARGUMENT;
    status = zt_slice_source(&slice, made->source, made->parts[1].offset, &source, &error);
    if (status != ZT_OK)
        return status;
    status = zt_source_read_at(source, 0, out, sizeof(out), &error);
    if (status == ZT_OK)
        status = zt_npy_head(&tensor, &head, &length, &error);
    if (status == ZT_OK)
        free(head);
    zt_source_close(source);
    return status;
}

/* *out_met is whether the call reached its n-th allocation, which failed. */
static enum zt_status call_failing(enum zt_status (*call)(struct handmade *made),
                                   struct handmade *made, long n, bool *out_met)
{
    enum zt_status status;

    allocation_fail(n);
    status = call(made);
    *out_met = allocation_end();
    return status;
}

/* Fails each allocation in turn until the call succeeds without reaching the failing one. */
static void assert_survives(enum zt_status (*call)(struct handmade *made), struct handmade *made)
{
    /* Call once without failures, and repeat each failure, because libraries keep memory that they
     * allocate on first use, even for errors. */
    assert_int_equal(call(made), ZT_OK);
    for (long n = 0; n < CALLS_MAX; n++) {
        enum zt_status status;
        long before;
        bool met;

        call_failing(call, made, n, &met);
        before = allocation_outstanding();
        status = call_failing(call, made, n, &met);
        assert_int_equal(allocation_outstanding(), before);
        if (!met) {
            assert_int_equal(status, ZT_OK);
            assert_true(n > 1);
            return;
        }
        /* A library may manage without the memory; the result must then be right. */
        assert_true(status == ZT_NO_MEMORY || status == ZT_OK);
    }
    fail_msg("the call makes more than %d allocations", CALLS_MAX);
}

static void every_allocation_may_fail(void **state)
{
    static const uint64_t shape[] = {64, 100};
    uint32_t coords[2048];
    struct bytes stream = {NULL, 0};
    struct handmade made;
    struct zt_component *part;

    (void)state;
    for (uint32_t i = 0; i < 1024; i++) {
        coords[i] = i / 16;
        coords[1024 + i] = i % 16 ^ 1;
    }
    bytes_append_seekable(&stream, coords, sizeof(coords), 4096);
    handmade_init(&made, ZT_FORMAT_ZT2, ZT_LAYOUT_SPARSE_COO, 2, shape);
    part = handmade_add(&made, "coords", ZT_U32, stream.at, stream.length);
    part->encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    part->decoded_length = sizeof(coords);
    /* Not SHA-256: OpenSSL keeps blocks of its own when its caches cannot grow. */
    part->digest = "xxh3:0000000000000000";
    part->digest_length = 21;
    handmade_add(&made, "values", ZT_U8, coords, 1024);
    handmade_open(&made);
#ifndef ZT_SANITIZED
    assert_survives(check_digest, &made);
    assert_survives(check_content, &made);
    assert_survives(read_frames, &made);
    assert_survives(read_frames_source, &made);
    assert_survives(read_slice, &made);
#else
    (void)assert_survives, (void)check_digest, (void)check_content, (void)read_frames,
        (void)read_frames_source, (void)read_slice;
#endif
    handmade_free(&made);
    bytes_free(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
