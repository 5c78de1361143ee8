/* Running out of memory: each allocation of decoding and checking fails once, and nothing is
 * leaked.
 *
 * The C library's allocator is replaced in this program, so it tests nothing under sanitizers,
 * which do the same. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "handmade.h"
#include "survives.h"
#include "zt/slice.h"
#include "zt/verify.h"

static enum zt_status check_digest(void *context)
{
    struct handmade *made = context;
    struct zt_component_check result;
    struct zt_error error;

    return zt_component_check(&made->model, &made->parts[0], made->source, NULL, &result, &error);
}

static enum zt_status check_content(void *context)
{
    struct handmade *made = context;
    const struct zt_files files = {made->source, NULL};
    struct zt_error error;

    return zt_object_check(&made->model, &made->object, &files, &error);
}

static enum zt_status read_frames(void *context)
{
    struct handmade *made = context;
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
static enum zt_status read_frames_source(void *context)
{
    struct handmade *made = context;
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

static enum zt_status read_slice(void *context)
{
    struct handmade *made = context;
    static const uint64_t shape[] = {64, 16};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    struct zt_slice slice;
    struct zt_source *source;
    struct zt_error error;
    uint8_t out[128], *head;
    size_t length;
    enum zt_status status;

    if (zt_slice_parse(&tensor, zt_text_from(":,3:5"), &slice, &error) != ZT_SLICE_FITS)
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

TEST(every_allocation_may_fail)
{
    static const uint64_t shape[] = {64, 100};
    uint32_t coords[2048];
    struct bytes stream = {NULL, 0};
    struct handmade made;
    struct zt_component *part;

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
    assert_survives(check_digest, &made);
    assert_survives(check_content, &made);
    assert_survives(read_frames, &made);
    assert_survives(read_frames_source, &made);
    assert_survives(read_slice, &made);
    handmade_free(&made);
    bytes_free(&stream);
}
