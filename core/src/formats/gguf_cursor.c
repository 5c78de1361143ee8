/* GGUF: a cursor over the file or over memory. */
#include "formats/gguf_cursor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The window begins small, for files that are, and doubles with every reading. */
#define TAKE_MAX_BYTES      64
#define FIRST_FETCH_BYTES   4096
#define LARGEST_FETCH_BYTES (256u << 10)

enum zt_status gguf_cursor_over_file(struct gguf_cursor *cursor, struct zt_source *source,
                                     struct zt_error *error)
{
    uint8_t *buffer = malloc(LARGEST_FETCH_BYTES);

    if (buffer == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    *cursor = (struct gguf_cursor){.end = zt_source_size(source),
                                   .window = buffer,
                                   .source = source,
                                   .buffer = buffer,
                                   .fetch_bytes = FIRST_FETCH_BYTES};
    return ZT_OK;
}

void gguf_cursor_over_memory(struct gguf_cursor *cursor, const uint8_t *bytes, size_t length)
{
    *cursor = (struct gguf_cursor){.end = length, .window = bytes, .window_length = length};
}

void gguf_cursor_close(struct gguf_cursor *cursor)
{
    free(cursor->buffer);
    cursor->buffer = NULL;
}

uint64_t gguf_cursor_left(const struct gguf_cursor *cursor)
{
    return cursor->end - cursor->position;
}

static enum zt_status fetch(struct gguf_cursor *cursor, struct zt_error *error)
{
    uint64_t left = gguf_cursor_left(cursor);
    size_t length;
    enum zt_status status;

    if (cursor->position > GGUF_HEADER_MAX_BYTES) {
        return zt_fail(error, ZT_INVALID, "gguf §Header HeaderTooLarge", 0,
                       "the header is larger than 1 GiB");
    }
    length = left < cursor->fetch_bytes ? (size_t)left : cursor->fetch_bytes;
    status = zt_source_read_at(cursor->source, cursor->position, cursor->buffer, length, error);
    if (status != ZT_OK)
        return status;
    cursor->window_at = cursor->position;
    cursor->window_length = length;
    if (cursor->fetch_bytes < LARGEST_FETCH_BYTES)
        cursor->fetch_bytes *= 2;
    return ZT_OK;
}

static bool in_window(const struct gguf_cursor *cursor, size_t length)
{
    return cursor->position >= cursor->window_at &&
           cursor->position - cursor->window_at <= cursor->window_length &&
           length <= cursor->window_length - (cursor->position - cursor->window_at);
}

enum zt_status gguf_take(struct gguf_cursor *cursor, size_t length, const uint8_t **out_bytes,
                         struct zt_error *error)
{
    if (length > gguf_cursor_left(cursor)) {
        return zt_fail(error, ZT_INVALID, cursor->bounds_rule, cursor->position,
                       "%zu bytes are wanted where %" PRIu64 " remain", length,
                       gguf_cursor_left(cursor));
    }
    if (!in_window(cursor, length)) {
        enum zt_status status;

        assert(cursor->source != NULL && length <= TAKE_MAX_BYTES);
        status = fetch(cursor, error);
        if (status != ZT_OK)
            return status;
    }
    *out_bytes = cursor->window + (cursor->position - cursor->window_at);
    cursor->position += length;
    return ZT_OK;
}

uint64_t gguf_load(const uint8_t *bytes, unsigned length)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < length; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

enum zt_status gguf_take_u32(struct gguf_cursor *cursor, uint32_t *out_value,
                             struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status = gguf_take(cursor, 4, &bytes, error);

    if (status == ZT_OK)
        *out_value = (uint32_t)gguf_load(bytes, 4);
    return status;
}

enum zt_status gguf_take_u64(struct gguf_cursor *cursor, uint64_t *out_value,
                             struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status = gguf_take(cursor, 8, &bytes, error);

    if (status == ZT_OK)
        *out_value = gguf_load(bytes, 8);
    return status;
}

enum zt_status gguf_take_length(struct gguf_cursor *cursor, uint64_t *out_length,
                                struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint64_t length;
    enum zt_status status = gguf_take_u64(cursor, &length, error);

    if (status != ZT_OK)
        return status;
    if (length > gguf_cursor_left(cursor)) {
        return zt_fail(error, ZT_INVALID, cursor->bounds_rule, at,
                       "a string of %" PRIu64 " bytes where %" PRIu64 " remain", length,
                       gguf_cursor_left(cursor));
    }
    *out_length = length;
    return ZT_OK;
}

enum zt_status gguf_take_string(struct gguf_cursor *cursor, struct zt_text *out_string,
                                struct zt_error *error)
{
    uint64_t length;
    const uint8_t *bytes;
    enum zt_status status = gguf_take_length(cursor, &length, error);

    if (status == ZT_OK)
        status = gguf_take(cursor, (size_t)length, &bytes, error);
    if (status == ZT_OK)
        *out_string = (struct zt_text){(const char *)bytes, (size_t)length};
    return status;
}

void gguf_pass(struct gguf_cursor *cursor, uint64_t length)
{
    assert(length <= gguf_cursor_left(cursor));
    cursor->position += length;
}
