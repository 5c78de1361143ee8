/* Compressing for others than the library's own writers: the compressor with a sink of its own. */
#include "zt/encode.h"

#include <stdlib.h>

#include "coding/zstd_compress.h"

struct zt_encoder {
    struct zt_sink out;
    struct zt_compressor *compressor;
};

enum zt_status zt_encoder_open(enum zt_target target, int level, const struct zt_sink *out,
                               struct zt_encoder **out_encoder, struct zt_error *error)
{
    struct zt_encoder *encoder = calloc(1, sizeof(*encoder));
    enum zt_status status;

    if (encoder == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to compress with");
    encoder->out = *out;
    status = zt_compressor_new(level, target == ZT_TARGET_ZT2, &encoder->out, &encoder->compressor,
                               error);
    if (status != ZT_OK) {
        free(encoder);
        return status;
    }
    zt_compressor_bound_memory(encoder->compressor, level);
    *out_encoder = encoder;
    return ZT_OK;
}

enum zt_status zt_encoder_append(struct zt_encoder *encoder, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    return zt_compressor_append(encoder->compressor, bytes, length, error);
}

enum zt_status zt_encoder_finish(struct zt_encoder *encoder, struct zt_error *error)
{
    return zt_compressor_end(encoder->compressor, error);
}

void zt_encoder_close(struct zt_encoder *encoder)
{
    if (encoder == NULL)
        return;
    zt_compressor_free(encoder->compressor);
    free(encoder);
}
