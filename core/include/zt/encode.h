/* Compressing a component as a version of zTensor stores it: zstd in 1.2, zt.zstd-seekable/1 in 2.
 */
#ifndef ZT_ENCODE_H
#define ZT_ENCODE_H

#include "zt/writer.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_encoder;

/* target: ZT_TARGET_ZT1 or ZT_TARGET_ZT2. level: 1 to 22, 0 for 3; ZT_ARGUMENT for any other. What
 * is compressed goes to out, which is borrowed, as is its context. Holds two blocks of 1 MiB and
 * some 5 MiB at most, whatever the level: many may be open at once. */
enum zt_status zt_encoder_open(enum zt_target target, int level, const struct zt_sink *out,
                               struct zt_encoder **out_encoder, struct zt_error *error);

/* Decoded bytes, in pieces of any length. */
enum zt_status zt_encoder_append(struct zt_encoder *encoder, const void *bytes, size_t length,
                                 struct zt_error *error);

/* Writes what comes last; nothing can be appended any more. */
enum zt_status zt_encoder_finish(struct zt_encoder *encoder, struct zt_error *error);

/* Takes NULL. */
void zt_encoder_close(struct zt_encoder *encoder);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
