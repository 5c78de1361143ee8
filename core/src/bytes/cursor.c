/* Cursors: a window that moves forward over a file, or one that covers bytes in memory. */
#include "bytes/cursor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cut_off.h"
#include "base/little_endian.h"

/* The first window is small because most headers are; each later window is twice as large. */
#define FIRST_FETCH_BYTES   4096
#define LARGEST_FETCH_BYTES ((size_t)256 << 10)
/* Once this much of a header has been read from a remote source, as much again is fetched ahead:
 * most headers are shorter, and some have tens of megabytes. */
#define AHEAD_FROM_BYTES ((uint64_t)3 << 18)
#define AHEAD_BYTES      ((uint64_t)8 << 20)

static_assert(ZT_CURSOR_TAKE_MAX <= LARGEST_FETCH_BYTES, "a window holds what is taken at once");

enum zt_status zt_cursor_open(struct zt_cursor *cursor, struct zt_source *source,
                              struct zt_error *error)
{
    uint8_t *buffer = malloc(LARGEST_FETCH_BYTES);

    if (buffer == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    *cursor = (struct zt_cursor){.end = zt_source_size(source),
                                 .window = buffer,
                                 .source = source,
                                 .buffer = buffer,
                                 .fetch_bytes = FIRST_FETCH_BYTES};
    return ZT_OK;
}

void zt_cursor_over(struct zt_cursor *cursor, const uint8_t *bytes, uint64_t length)
{
    *cursor = (struct zt_cursor){.end = length, .window = bytes, .window_length = (size_t)length};
}

void zt_cursor_close(struct zt_cursor *cursor)
{
    free(cursor->buffer);
    cursor->buffer = NULL;
    cursor->window = NULL;
}

uint64_t zt_cursor_left(const struct zt_cursor *cursor)
{
    assert(cursor->position <= cursor->end);
    return cursor->end - cursor->position;
}

static enum zt_status check_left(const struct zt_cursor *cursor, uint64_t length,
                                 struct zt_error *error)
{
    const uint64_t left = zt_cursor_left(cursor);
    const bool is_file_end =
        cursor->source != NULL && cursor->end == zt_source_size(cursor->source);

    if (length > left)
        return zt_fail(error, ZT_INVALID, cursor->bounds_rule, cursor->position,
                       "%s%" PRIu64 " bytes are needed where %" PRIu64 " are left",
                       is_file_end ? CUT_OFF : "", length, left);
    return ZT_OK;
}

static bool in_window(const struct zt_cursor *cursor, size_t length)
{
    uint64_t start;

    if (cursor->position < cursor->window_at)
        return false;
    start = cursor->position - cursor->window_at;
    return start <= cursor->window_length && length <= cursor->window_length - start;
}

static void advise_ahead(const struct zt_cursor *cursor, size_t fetched)
{
    const uint64_t at = cursor->position + fetched;
    uint64_t ahead = cursor->end - at;

    assert(at <= cursor->end);
    if (cursor->position < AHEAD_FROM_BYTES || cursor->is_scattered)
        return;
    ahead = ahead < cursor->position ? ahead : cursor->position;
    zt_source_advise(cursor->source, at, ahead < AHEAD_BYTES ? ahead : AHEAD_BYTES);
}

static enum zt_status fetch(struct zt_cursor *cursor, size_t length, struct zt_error *error)
{
    uint64_t left = zt_cursor_left(cursor);
    size_t wanted = length > cursor->fetch_bytes ? length : cursor->fetch_bytes;
    enum zt_status status;

    assert(cursor->source != NULL);
    assert(length <= ZT_CURSOR_TAKE_MAX && length <= left);
    if (wanted > left)
        wanted = (size_t)left;
    advise_ahead(cursor, wanted);
    status = zt_source_read_at(cursor->source, cursor->position, cursor->buffer, wanted, error);
    if (status != ZT_OK)
        return status;
    cursor->window_at = cursor->position;
    cursor->window_length = wanted;
    if (cursor->fetch_bytes < LARGEST_FETCH_BYTES)
        cursor->fetch_bytes *= 2;
    assert(in_window(cursor, length));
    return ZT_OK;
}

enum zt_status zt_cursor_take(struct zt_cursor *cursor, uint64_t length, const uint8_t **out_bytes,
                              struct zt_error *error)
{
    enum zt_status status = check_left(cursor, length, error);

    if (status == ZT_OK && !in_window(cursor, (size_t)length))
        status = fetch(cursor, (size_t)length, error);
    if (status != ZT_OK)
        return status;
    *out_bytes = cursor->window + (cursor->position - cursor->window_at);
    cursor->position += length;
    assert(cursor->position <= cursor->end);
    return ZT_OK;
}

enum zt_status zt_cursor_u32(struct zt_cursor *cursor, uint32_t *out_value, struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status = zt_cursor_take(cursor, 4, &bytes, error);

    if (status == ZT_OK)
        *out_value = zt_load_le32(bytes);
    return status;
}

enum zt_status zt_cursor_u64(struct zt_cursor *cursor, uint64_t *out_value, struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status = zt_cursor_take(cursor, 8, &bytes, error);

    if (status == ZT_OK)
        *out_value = zt_load_le64(bytes);
    return status;
}

enum zt_status zt_cursor_skip(struct zt_cursor *cursor, uint64_t length, struct zt_error *error)
{
    enum zt_status status = check_left(cursor, length, error);

    if (status != ZT_OK)
        return status;
    cursor->position += length;
    assert(cursor->position <= cursor->end);
    /* Beyond a long run there may be as little to read as there was before it. */
    if (cursor->is_scattered && length >= LARGEST_FETCH_BYTES)
        cursor->fetch_bytes = FIRST_FETCH_BYTES;
    return ZT_OK;
}
