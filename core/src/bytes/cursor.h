/* Walking headers that do not state their length: the header of GGUF, the records of .mag.
 *
 * A first cursor walks the file through a window to find where the header ends; a second one walks
 * the header in memory to read it. Every length is compared with the remaining bytes before it is
 * used. */
#ifndef ZT_BYTES_CURSOR_H
#define ZT_BYTES_CURSOR_H

#include "zt/source.h"

/* The most bytes that one zt_cursor_take returns from a file. */
#define ZT_CURSOR_TAKE_MAX 65535

struct zt_cursor {
    uint64_t position; /* absolute */
    uint64_t end;
    /* The rule reported for anything that runs past end; the caller sets it. */
    const char *bounds_rule;
    const uint8_t *window;
    uint64_t window_at; /* absolute position of window[0] */
    size_t window_length;
    struct zt_source *source; /* NULL: the bytes are in memory, all in the window */
    uint8_t *buffer;          /* owned memory of the window */
    size_t fetch_bytes;
    /* The reads are scattered in the file, between long runs that are skipped, so nothing is
     * fetched ahead. The caller sets it. */
    bool is_scattered;
};

/* Starts at the beginning of a file. Freed with zt_cursor_close. ZT_NO_MEMORY. */
enum zt_status zt_cursor_open(struct zt_cursor *cursor, struct zt_source *source,
                              struct zt_error *error);
/* Starts at the beginning of a file whose first length bytes are in memory (borrowed); the cursor
 * ends there. */
void zt_cursor_over(struct zt_cursor *cursor, const uint8_t *bytes, uint64_t length);
void zt_cursor_close(struct zt_cursor *cursor);

/* Bytes between the position and the end. */
uint64_t zt_cursor_left(const struct zt_cursor *cursor);

/* The following functions fail with bounds_rule at the current position if too few bytes are
 * left. */

/* Returns the next length bytes, at most ZT_CURSOR_TAKE_MAX from a file, and moves past them. They
 * are borrowed until the next call; bytes in memory are valid as long as that memory. */
enum zt_status zt_cursor_take(struct zt_cursor *cursor, uint64_t length, const uint8_t **out_bytes,
                              struct zt_error *error);
enum zt_status zt_cursor_u32(struct zt_cursor *cursor, uint32_t *out_value, struct zt_error *error);
enum zt_status zt_cursor_u64(struct zt_cursor *cursor, uint64_t *out_value, struct zt_error *error);
/* Moves past bytes without reading them. */
enum zt_status zt_cursor_skip(struct zt_cursor *cursor, uint64_t length, struct zt_error *error);

#endif
