/* Compressed bytes that every decoder accepts: compressing bytes in memory, and checking whether
 * stored zstd frames qualify. */
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

/* Compresses bytes in one call, at a level chosen for output that is made once and sent often.
 * *out_bytes is freed with free(). ZT_NO_MEMORY. */
enum zt_status zt_coding_encode(enum zt_coding coding, const void *bytes, size_t length,
                                uint8_t **out_bytes, size_t *out_length, struct zt_error *error);

/* Whether a component's stored bytes are complete zstd frames that every decoder accepts: windows
 * of at most 8 MiB (RFC 9659) and no dictionary. Skippable frames are allowed. Reads only the
 * headers of frames and blocks, so the contents of blocks are not checked. *out_fit is also false
 * if the frames' stated sizes contradict decoded_length. ZT_IO. */
enum zt_status zt_zstd_fits_all(struct zt_source *source, const struct zt_component *stored,
                                bool *out_fit, struct zt_error *error);

/* Whether all frames before the first malformed one need windows of at most 8 MiB; the rest is not
 * examined. ZT_IO. */
enum zt_status zt_zstd_windows_fit(struct zt_source *source, const struct zt_component *stored,
                                   bool *out_fit, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
