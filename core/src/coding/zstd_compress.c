/* zstd, fed with whole blocks of 1 MiB however the bytes arrive. */
#include "coding/zstd_compress.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "cbor/cbor_write.h"
#include "write/planning.h"

/* Of decoded bytes: a frame of a seekable stream, as the reference writes them. */
#define BLOCK_BYTES ((size_t)1 << 20)
#define LEVEL_MAX   22
/* From here on the tables of a level are larger than these, which are powers of two: 20 is a block.
 */
#define BOUNDED_LEVEL_MIN  4
#define BOUNDED_WINDOW_LOG 20
#define BOUNDED_TABLE_LOG  18
/* The seek table: a skippable frame of entries, their count, a descriptor without flags, and a
 * magic number. */
#define SKIPPABLE_MAGIC 0x184D2A5E
#define TABLE_MAGIC     0x8F92EAB1
#define FOOTER_LENGTH   9
#define ENTRY_LENGTH    8

struct zt_compressor {
    ZSTD_CCtx *context;
    const struct zt_sink *out;
    bool seekable;
    uint8_t *block;
    size_t filled;
    uint8_t *packed;
    size_t packed_size;
    struct zt_buffer table; /* entries, eight bytes for each block */
};

static enum zt_status set_up(struct zt_compressor *compressor, int level)
{
    compressor->packed_size = ZSTD_compressBound(BLOCK_BYTES);
    compressor->context = ZSTD_createCCtx();
    compressor->block = malloc(BLOCK_BYTES);
    compressor->packed = malloc(compressor->packed_size);
    if (compressor->context == NULL || compressor->block == NULL || compressor->packed == NULL)
        return ZT_NO_MEMORY;
    ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_compressionLevel,
                           level == 0 ? ZSTD_CLEVEL_DEFAULT : level);
    ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_checksumFlag, compressor->seekable ? 1 : 0);
    return ZT_OK;
}

enum zt_status zt_compressor_new(int level, bool seekable, const struct zt_sink *out,
                                 struct zt_compressor **out_compressor, struct zt_error *error)
{
    struct zt_compressor *compressor;

    if (level < 0 || level > LEVEL_MAX)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "zstd has no level %d: 1 to %d",
                       level, LEVEL_MAX);
    compressor = calloc(1, sizeof(*compressor));
    if (compressor != NULL) {
        compressor->out = out;
        compressor->seekable = seekable;
    }
    if (compressor == NULL || set_up(compressor, level) != ZT_OK) {
        zt_compressor_free(compressor);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to compress with");
    }
    *out_compressor = compressor;
    return ZT_OK;
}

void zt_compressor_bound_memory(struct zt_compressor *compressor, int level)
{
    if (level < BOUNDED_LEVEL_MIN)
        return;
    ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_windowLog, BOUNDED_WINDOW_LOG);
    ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_chainLog, BOUNDED_TABLE_LOG);
    ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_hashLog, BOUNDED_TABLE_LOG);
}

/* Feeds the block; end closes the frame. *out_length is how many bytes came out. */
static enum zt_status compress_block(struct zt_compressor *compressor, bool end,
                                     uint64_t *out_length, struct zt_error *error)
{
    ZSTD_inBuffer input = {compressor->block, compressor->filled, 0};
    size_t left;

    *out_length = 0;
    do {
        ZSTD_outBuffer output = {compressor->packed, compressor->packed_size, 0};

        left = ZSTD_compressStream2(compressor->context, &output, &input,
                                    end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "cannot compress: %s",
                           ZSTD_getErrorName(left));
        if (output.pos > 0) {
            enum zt_status status =
                compressor->out->take(compressor->out->context, output.dst, output.pos, error);

            if (status != ZT_OK)
                return status;
        }
        *out_length += output.pos;
    } while (end ? left != 0 : input.pos < input.size);
    compressor->filled = 0;
    return ZT_OK;
}

static enum zt_status end_block(struct zt_compressor *compressor, struct zt_error *error)
{
    uint32_t decoded = (uint32_t)compressor->filled;
    uint64_t stored;
    enum zt_status status = compress_block(compressor, compressor->seekable, &stored, error);

    if (status != ZT_OK || !compressor->seekable)
        return status;
    zt_put_le32(&compressor->table, (uint32_t)stored);
    zt_put_le32(&compressor->table, decoded);
    return compressor->table.failed ? zt_write_no_memory(error) : ZT_OK;
}

enum zt_status zt_compressor_append(struct zt_compressor *compressor, const void *bytes,
                                    size_t length, struct zt_error *error)
{
    const uint8_t *at = bytes;

    while (length > 0) {
        size_t room = BLOCK_BYTES - compressor->filled;
        size_t part = length < room ? length : room;

        memcpy(compressor->block + compressor->filled, at, part);
        compressor->filled += part;
        at += part;
        length -= part;
        if (compressor->filled == BLOCK_BYTES) {
            enum zt_status status = end_block(compressor, error);

            if (status != ZT_OK)
                return status;
        }
    }
    return ZT_OK;
}

static enum zt_status put_table(struct zt_compressor *compressor, struct zt_error *error)
{
    struct zt_buffer table = {0};
    size_t entries = compressor->table.length;
    enum zt_status status;

    if (entries > UINT32_MAX - FOOTER_LENGTH)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "too many frames for a seek table");
    zt_put_le32(&table, SKIPPABLE_MAGIC);
    zt_put_le32(&table, (uint32_t)entries + FOOTER_LENGTH);
    zt_buffer_append(&table, compressor->table.bytes, entries);
    zt_put_le32(&table, (uint32_t)(entries / ENTRY_LENGTH));
    zt_buffer_append(&table, "\0", 1);
    zt_put_le32(&table, TABLE_MAGIC);
    compressor->table.length = 0;
    status = table.failed ? zt_write_no_memory(error)
                          : compressor->out->take(compressor->out->context, table.bytes,
                                                  table.length, error);
    zt_buffer_free(&table);
    return status;
}

enum zt_status zt_compressor_end(struct zt_compressor *compressor, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    uint64_t stored;

    if (!compressor->seekable)
        return compress_block(compressor, true, &stored, error);
    if (compressor->filled > 0)
        status = end_block(compressor, error);
    return status == ZT_OK ? put_table(compressor, error) : status;
}

void zt_compressor_free(struct zt_compressor *compressor)
{
    if (compressor == NULL)
        return;
    ZSTD_freeCCtx(compressor->context);
    free(compressor->block);
    free(compressor->packed);
    zt_buffer_free(&compressor->table);
    free(compressor);
}
