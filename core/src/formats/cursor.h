/* Walking bytes that do not say how long they are: the header of GGUF, the records of .mag.
 *
 * A cursor goes over the file, through a window of it, to find where the header ends; and over the
 * header in memory, to read it. Every length is compared with the bytes that remain before it is
 * used. */
#ifndef ZT_FORMATS_CURSOR_H
#define ZT_FORMATS_CURSOR_H

#include "zt/source.h"

/* The most that is taken at once from a file. */
#define ZT_CURSOR_TAKE_MAX 65535

struct zt_cursor {
    uint64_t position; /* absolute */
    uint64_t end;
    /* The rule broken by something that does not end before end; the caller sets it. */
    const char *bounds_rule;
    const uint8_t *window;
    uint64_t window_at; /* absolute position of window[0] */
    size_t window_length;
    struct zt_source *source; /* NULL: the window is all there is */
    uint8_t *buffer;          /* owned: what the window lies in */
    size_t fetch_bytes;
};

/* Over the whole file, at its beginning. Freed with zt_cursor_close. ZT_NO_MEMORY. */
enum zt_status zt_cursor_open(struct zt_cursor *cursor, struct zt_source *source,
                              struct zt_error *error);
/* Over the file's first length bytes, which are in memory. */
void zt_cursor_over(struct zt_cursor *cursor, const uint8_t *bytes, uint64_t length);
void zt_cursor_close(struct zt_cursor *cursor);

/* Bytes between the position and the end. */
uint64_t zt_cursor_left(const struct zt_cursor *cursor);

/* The following fail by bounds_rule, at the position, if fewer bytes are left than they need. */

/* Takes length bytes, at most ZT_CURSOR_TAKE_MAX from a file. They are borrowed until the next
 * call; over memory they live as long as the memory. */
enum zt_status zt_cursor_take(struct zt_cursor *cursor, uint64_t length, const uint8_t **out_bytes,
                              struct zt_error *error);
enum zt_status zt_cursor_u32(struct zt_cursor *cursor, uint32_t *out_value, struct zt_error *error);
enum zt_status zt_cursor_u64(struct zt_cursor *cursor, uint64_t *out_value, struct zt_error *error);
/* Passes over bytes without reading them. */
enum zt_status zt_cursor_skip(struct zt_cursor *cursor, uint64_t length, struct zt_error *error);

#endif
