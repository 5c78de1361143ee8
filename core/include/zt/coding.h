/* Compressed forms that any decoder takes: making them of a text in memory, and telling whether
 * stored frames are one. */
#ifndef ZT_CODING_H
#define ZT_CODING_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum zt_coding {
    ZT_CODING_ZSTD, /* RFC 8878; a window of at most 8 MiB */
    ZT_CODING_GZIP  /* RFC 1952 */
};

/* Compresses bytes as a whole, at a level that suits what is made once and read often. What comes
 * out is freed with free(), and is never reserved longer than a compressor may need. ZT_NO_MEMORY.
 */
enum zt_status zt_coding_encode(enum zt_coding coding, const void *bytes, size_t length,
                                uint8_t **out_bytes, size_t *out_length, struct zt_error *error);

/* Whether stored bytes are zstd frames that every decoder takes: each with a window of at most 8
 * MiB (RFC 9659) and without a dictionary; skippable frames may be among them. Walks from block to
 * block by their headers and decodes nothing, so that blocks may hold anything. *out_fit is false
 * too when the bytes are no run of whole frames, and when these say of themselves that they hold
 * another number of bytes than decoded_length. ZT_IO. */
enum zt_status zt_zstd_fits_all(struct zt_source *source, const struct zt_component *stored,
                                bool *out_fit, struct zt_error *error);

/* Whether no frame among stored bytes asks for a window above 8 MiB, as far as these are frames:
 * what comes behind the first that is none is not looked at. ZT_IO. */
enum zt_status zt_zstd_windows_fit(struct zt_source *source, const struct zt_component *stored,
                                   bool *out_fit, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
