/* A growing run of bytes. */
#include "base/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/little_endian.h"

#define SMALLEST_BUFFER_BYTES 64

uint8_t *zt_buffer_reserve(struct zt_buffer *buffer, size_t length)
{
    size_t needed;

    assert(buffer->length <= buffer->capacity);
    if (buffer->failed || length > SIZE_MAX - buffer->length) {
        buffer->failed = true;
        return NULL;
    }
    needed = buffer->length + length;
    if (needed < SMALLEST_BUFFER_BYTES)
        needed = SMALLEST_BUFFER_BYTES;
    if (zt_array_reserve(&buffer->bytes, &buffer->capacity, needed, 1, SIZE_MAX) != ZT_OK) {
        buffer->failed = true;
        return NULL;
    }
    assert(buffer->capacity - buffer->length >= length);
    return buffer->bytes + buffer->length;
}

void zt_buffer_append(struct zt_buffer *buffer, const void *bytes, size_t length)
{
    uint8_t *room = length > 0 ? zt_buffer_reserve(buffer, length) : NULL;

    if (room == NULL)
        return;
    memcpy(room, bytes, length);
    buffer->length += length;
}

void zt_buffer_append_le16(struct zt_buffer *buffer, uint16_t value)
{
    uint8_t bytes[2];

    zt_store_le16(bytes, value);
    zt_buffer_append(buffer, bytes, sizeof(bytes));
}

void zt_buffer_append_le32(struct zt_buffer *buffer, uint32_t value)
{
    uint8_t bytes[4];

    zt_store_le32(bytes, value);
    zt_buffer_append(buffer, bytes, sizeof(bytes));
}

void zt_buffer_append_le64(struct zt_buffer *buffer, uint64_t value)
{
    uint8_t bytes[8];

    zt_store_le64(bytes, value);
    zt_buffer_append(buffer, bytes, sizeof(bytes));
}

void zt_buffer_free(struct zt_buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof(*buffer));
}
