/* Compressed forms that any decoder accepts: compressing a text in memory, and checking that stored
 * zstd frames are such a form. */
#ifndef ZT_CODING_H
#define ZT_CODING_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum zt_coding {
    ZT_CODING_ZSTD, /* RFC 8878, with a window of at most 8 MiB */
    ZT_CODING_GZIP  /* RFC 1952 */
};

/* Compresses bytes as a whole, at a level that suits output made once and sent often. *out_bytes is
 * freed with free(). ZT_NO_MEMORY. */
enum zt_status zt_coding_encode(enum zt_coding coding, const void *bytes, size_t length,
                                uint8_t **out_bytes, size_t *out_length, struct zt_error *error);

/* Whether stored bytes are whole zstd frames that every decoder accepts: windows of at most 8 MiB
 * (RFC 9659) and no dictionary; skippable frames may be among them. Walks from block to block by
 * their headers and decodes nothing, so the contents of blocks are not checked. *out_fit is also
 * false if the frames state another total than decoded_length. ZT_IO. */
enum zt_status zt_zstd_fits_all(struct zt_source *source, const struct zt_component *stored,
                                bool *out_fit, struct zt_error *error);

/* Whether no frame needs a window above 8 MiB, up to the first bytes that are no frame; the rest is
 * not looked at. ZT_IO. */
enum zt_status zt_zstd_windows_fit(struct zt_source *source, const struct zt_component *stored,
                                   bool *out_fit, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
