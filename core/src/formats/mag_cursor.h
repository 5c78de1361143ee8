/* Reading a .mag file's records one after another, through a window of the source.
 *
 * Records have no total length, so where they end is found by walking them; only then is a model's
 * manifest known. */
#ifndef ZT_FORMATS_MAG_CURSOR_H
#define ZT_FORMATS_MAG_CURSOR_H

#include "zt/source.h"

/* The most that is taken at a time: a key. */
#define MAG_TAKE_MAX    65535
#define MAG_WINDOW_SIZE ((size_t)128 << 10)

struct mag_cursor {
    struct zt_source *source;
    uint64_t size; /* of the file */
    uint64_t position;
    /* What a record that does not fit breaks. */
    const char *rule;
    uint64_t window_at;
    size_t window_length;
    uint8_t *window;
};

/* Begins at a position. ZT_NO_MEMORY. */
enum zt_status mag_cursor_open(struct mag_cursor *cursor, struct zt_source *source,
                               uint64_t position, struct zt_error *error);

/* The next length bytes, borrowed until the next call. cursor->rule when they are not there. */
enum zt_status mag_cursor_take(struct mag_cursor *cursor, size_t length, const uint8_t **out_bytes,
                               struct zt_error *error);
enum zt_status mag_cursor_u32(struct mag_cursor *cursor, uint32_t *out_value,
                              struct zt_error *error);
enum zt_status mag_cursor_u64(struct mag_cursor *cursor, uint64_t *out_value,
                              struct zt_error *error);
/* Passes over bytes without reading them. */
enum zt_status mag_cursor_skip(struct mag_cursor *cursor, uint64_t length, struct zt_error *error);

void mag_cursor_close(struct mag_cursor *cursor);

#endif
