/* Models of one object, made by hand over a buffer, and encoded data for them: for tests below the
 * readers. */
#ifndef ZT_TEST_HANDMADE_H
#define ZT_TEST_HANDMADE_H

#include <stdbool.h>

#include "zt/model.h"

struct bytes {
    uint8_t *at;
    size_t length;
};

void bytes_append(struct bytes *bytes, const void *added, size_t length);
void bytes_append_u32(struct bytes *bytes, uint32_t value);
void bytes_free(struct bytes *bytes);

/* Appends one zstd frame without content size, as the reference writers make them. */
void bytes_append_zstd(struct bytes *bytes, const void *plain, size_t length, bool checksum);
/* Appends a zt.zstd-seekable/1 stream of frames of chunk bytes. */
void bytes_append_seekable(struct bytes *bytes, const void *plain, size_t length, size_t chunk);

#define HANDMADE_PARTS 4

struct handmade {
    struct bytes data;
    struct zt_component parts[HANDMADE_PARTS];
    uint64_t shape[4];
    struct zt_object object;
    struct zt_model model;
    struct zt_source *source;
};

/* An object of up to four dimensions; data begins at offset 64. */
void handmade_init(struct handmade *made, enum zt_format format, enum zt_layout layout,
                   unsigned rank, const uint64_t *shape);
/* Adds a raw component; call it in the order of names. The result may be changed until
 * handmade_open. */
struct zt_component *handmade_add(struct handmade *made, const char *name, enum zt_dtype dtype,
                                  const void *bytes, size_t length);
/* Makes a source of the data. */
void handmade_open(struct handmade *made);
void handmade_free(struct handmade *made);

#endif
