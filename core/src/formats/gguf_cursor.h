/* GGUF: walking the header's bytes, which say nowhere how many they are.
 *
 * A cursor goes over the file itself, through a window of it, to find where the header ends; and
 * over the header in memory, to read it. Every length is compared with the bytes that remain before
 * it is used. */
#ifndef ZT_FORMATS_GGUF_CURSOR_H
#define ZT_FORMATS_GGUF_CURSOR_H

#include "formats/gguf_types.h"
#include "zt/source.h"

/* As for a manifest of zTensor. */
#define GGUF_HEADER_MAX_BYTES (1ull << 30)

struct gguf_cursor {
    uint64_t position; /* absolute */
    uint64_t end;
    /* What is told when something does not end before end. */
    const char *bounds_rule;
    /* Bytes in memory. */
    const uint8_t *window;
    uint64_t window_at; /* absolute position of window[0] */
    size_t window_length;
    /* NULL where the window is all there is. */
    struct zt_source *source;
    uint8_t *buffer; /* owned: what the window lies in */
    size_t fetch_bytes;
};

/* Over the file, for GGUF_HEADER_MAX_BYTES at most (rule "gguf §Header HeaderTooLarge"). Freed with
 * gguf_cursor_close. ZT_NO_MEMORY. */
enum zt_status gguf_cursor_over_file(struct gguf_cursor *cursor, struct zt_source *source,
                                     struct zt_error *error);
/* Over the file's first length bytes, which are in memory. */
void gguf_cursor_over_memory(struct gguf_cursor *cursor, const uint8_t *bytes, size_t length);
void gguf_cursor_close(struct gguf_cursor *cursor);

/* Bytes between the position and the end. */
uint64_t gguf_cursor_left(const struct gguf_cursor *cursor);

/* Borrows the next length bytes until the next call, and passes over them. Over the file length is
 * at most 64. */
enum zt_status gguf_take(struct gguf_cursor *cursor, size_t length, const uint8_t **out_bytes,
                         struct zt_error *error);
enum zt_status gguf_take_u32(struct gguf_cursor *cursor, uint32_t *out_value,
                             struct zt_error *error);
enum zt_status gguf_take_u64(struct gguf_cursor *cursor, uint64_t *out_value,
                             struct zt_error *error);
/* Reads a string's length, and checks that so many bytes follow; the position is that of the first
 * of them. */
enum zt_status gguf_take_length(struct gguf_cursor *cursor, uint64_t *out_length,
                                struct zt_error *error);
/* A string, borrowed from the memory that the cursor is over. It need not be UTF-8. */
enum zt_status gguf_take_string(struct gguf_cursor *cursor, struct zt_text *out_string,
                                struct zt_error *error);
/* Passes over bytes that remain. */
void gguf_pass(struct gguf_cursor *cursor, uint64_t length);

/* Little-endian, of 1 to 8 bytes. */
uint64_t gguf_load(const uint8_t *bytes, unsigned length);

#endif
