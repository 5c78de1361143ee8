/* Applies a difference, piece by piece. */
#include <assert.h>
#include <stdlib.h>

#include "coding/xor_bytes.h"
#include "coding/zstd_stream.h"
#include "zt/xor.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define RULE        "xor-zstd"

static const struct zt_zstd_rules rules = {
    .frame = RULE, .length = RULE, .window = RULE, .ratio = RULE, .window_log_max = 23};

static enum zt_status apply(const struct zt_xor_difference *difference,
                            struct zt_zstd_stream *stream, uint8_t *room, const struct zt_sink *out,
                            struct zt_error *error)
{
    uint8_t *bytes = room;
    uint8_t *base = room + PIECE_BYTES;

    for (uint64_t at = 0;;) {
        size_t length;
        enum zt_status status = zt_zstd_stream_read(stream, bytes, PIECE_BYTES, &length, error);

        if (status != ZT_OK || length == 0)
            return status;
        assert(length <= difference->length - at);
        status = zt_source_read_at(difference->base, difference->base_at + at, base, length, error);
        if (status != ZT_OK)
            return status;
        zt_xor_bytes(bytes, base, length);
        status = out->take(out->context, bytes, length, error);
        if (status != ZT_OK)
            return status;
        at += length;
    }
}

enum zt_status zt_xor_decode(const struct zt_xor_difference *difference, const struct zt_sink *out,
                             struct zt_error *error)
{
    struct zt_zstd_stream *stream = NULL;
    uint8_t *room = malloc(2 * PIECE_BYTES);
    enum zt_status status = room != NULL ? ZT_OK : zt_fail_memory(error, "a difference");

    if (status == ZT_OK)
        status = zt_zstd_stream_new(difference->frames, &rules, &stream, error);
    if (status == ZT_OK)
        status = zt_zstd_stream_start(stream, 0, zt_source_size(difference->frames),
                                      difference->length, error);
    if (status == ZT_OK)
        status = apply(difference, stream, room, out, error);
    zt_zstd_stream_free(stream);
    free(room);
    return status;
}
