/* A growing run of bytes. Once growth has failed it stays failed and ignores further writes, so
 * that a sequence of writes is checked once, at its end. Starts out cleared. */
#ifndef ZT_BASE_BUFFER_H
#define ZT_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zt_buffer {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool failed;
};

void zt_buffer_append(struct zt_buffer *buffer, const void *bytes, size_t length);
void zt_buffer_append_le16(struct zt_buffer *buffer, uint16_t value);
void zt_buffer_append_le32(struct zt_buffer *buffer, uint32_t value);
void zt_buffer_append_le64(struct zt_buffer *buffer, uint64_t value);

/* Makes room for length more bytes and returns where they go, to be filled and then counted by
 * adding to buffer->length; NULL if that fails. */
uint8_t *zt_buffer_reserve(struct zt_buffer *buffer, size_t length);

/* Frees the bytes and clears the buffer. */
void zt_buffer_free(struct zt_buffer *buffer);

#endif
