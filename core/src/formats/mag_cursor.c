/* A window that moves forward over a .mag file. */
#include "formats/mag_cursor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/little_endian.h"

enum zt_status mag_cursor_open(struct mag_cursor *cursor, struct zt_source *source,
                               uint64_t position, struct zt_error *error)
{
    memset(cursor, 0, sizeof(*cursor));
    cursor->source = source;
    cursor->size = zt_source_size(source);
    cursor->position = position;
    cursor->window = malloc(MAG_WINDOW_SIZE);
    if (cursor->window == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    return ZT_OK;
}

static enum zt_status fail_bounds(const struct mag_cursor *cursor, uint64_t length,
                                  struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, cursor->rule, cursor->position,
                   "%" PRIu64 " bytes are wanted where %" PRIu64 " are left", length,
                   cursor->size - cursor->position);
}

enum zt_status mag_cursor_take(struct mag_cursor *cursor, size_t length, const uint8_t **out_bytes,
                               struct zt_error *error)
{
    uint64_t left = cursor->size - cursor->position;

    assert(length <= MAG_TAKE_MAX);
    if (length > left)
        return fail_bounds(cursor, length, error);
    if (cursor->position < cursor->window_at ||
        cursor->position + length > cursor->window_at + cursor->window_length) {
        size_t part = left < MAG_WINDOW_SIZE ? (size_t)left : MAG_WINDOW_SIZE;
        enum zt_status status =
            zt_source_read_at(cursor->source, cursor->position, cursor->window, part, error);

        if (status != ZT_OK)
            return status;
        cursor->window_at = cursor->position;
        cursor->window_length = part;
    }
    *out_bytes = cursor->window + (cursor->position - cursor->window_at);
    cursor->position += length;
    return ZT_OK;
}

enum zt_status mag_cursor_u32(struct mag_cursor *cursor, uint32_t *out_value,
                              struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status = mag_cursor_take(cursor, 4, &bytes, error);

    if (status == ZT_OK)
        *out_value = load_le32(bytes);
    return status;
}

enum zt_status mag_cursor_u64(struct mag_cursor *cursor, uint64_t *out_value,
                              struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status = mag_cursor_take(cursor, 8, &bytes, error);

    if (status == ZT_OK)
        *out_value = load_le64(bytes);
    return status;
}

enum zt_status mag_cursor_skip(struct mag_cursor *cursor, uint64_t length, struct zt_error *error)
{
    if (length > cursor->size - cursor->position)
        return fail_bounds(cursor, length, error);
    cursor->position += length;
    return ZT_OK;
}

void mag_cursor_close(struct mag_cursor *cursor)
{
    free(cursor->window);
    cursor->window = NULL;
}
