/* The seek table: finding it, reading its entries, and checking its rules. */
#include "coding/seek_table.h"

#include <assert.h>
#include <inttypes.h>

#include "base/little_endian.h"
#include "zt/model.h"

static const char rule[] = "zt2 §6 SeekTable";

const struct zt_zstd_rules zt_seekable_rules = {
    .frame = "zt2 §6 Encoding",
    .length = "zt2 §6 Encoding",
    .window = "zt2 §6 Encoding",
    .ratio = "zt2 §6 Encoding",
    .one_checked_frame = true,
};

/* A skippable frame: magic and content length before the entries; count, descriptor and magic after
 * them. */
#define HEAD_BYTES   8
#define FOOTER_BYTES 9
#define HEAD_MAGIC   0x184D2A5Eu
#define FOOTER_MAGIC 0x8F92EAB1u
#define HAS_CHECKSUM 0x80u
/* The encoding's bound on a frame, so that readers can decode a whole frame in memory. */
#define FRAME_DECODED_MAX ((uint32_t)16 << 20)
/* The shortest frame with a checksum: magic, descriptor, window or size, an empty last block,
 * checksum. */
#define FRAME_STORED_MIN 13

/* Finds the entries from the last nine bytes and checks that head and footer agree. */
static enum zt_status read_bounds(const struct zt_component *component, struct zt_seek_table *table,
                                  struct zt_error *error)
{
    uint8_t footer[FOOTER_BYTES], head[HEAD_BYTES];
    uint64_t end = component->offset + component->length;
    uint64_t footer_at = end - FOOTER_BYTES;
    uint64_t table_bytes;
    enum zt_status status;

    if (component->length < HEAD_BYTES + FOOTER_BYTES)
        return zt_fail(error, ZT_CORRUPT, rule, component->offset,
                       "%" PRIu64 " stored bytes hold no seek table", component->length);
    status = zt_source_read_at(table->source, footer_at, footer, FOOTER_BYTES, error);
    if (status != ZT_OK)
        return status;
    if (zt_load_le32(footer + 5) != FOOTER_MAGIC)
        return zt_fail(error, ZT_CORRUPT, rule, end - 4, "the seek table's magic number is wrong");
    if (footer[4] & ~HAS_CHECKSUM)
        return zt_fail(error, ZT_CORRUPT, rule, end - 5,
                       "the seek table's descriptor 0x%02x has reserved bits", footer[4]);
    table->count = zt_load_le32(footer);
    table->entry_bytes = footer[4] & HAS_CHECKSUM ? 12 : 8;
    table_bytes = (uint64_t)table->count * table->entry_bytes + HEAD_BYTES + FOOTER_BYTES;
    if (table_bytes > component->length)
        return zt_fail(error, ZT_CORRUPT, rule, footer_at,
                       "a seek table of %" PRIu32 " entries does not fit", table->count);
    table->entries_offset = end - table_bytes + HEAD_BYTES;
    assert(table->entries_offset >= component->offset + HEAD_BYTES &&
           table->entries_offset <= footer_at);
    status = zt_source_read_at(table->source, end - table_bytes, head, HEAD_BYTES, error);
    if (status != ZT_OK)
        return status;
    if (zt_load_le32(head) != HEAD_MAGIC || zt_load_le32(head + 4) != table_bytes - HEAD_BYTES)
        return zt_fail(error, ZT_CORRUPT, rule, end - table_bytes,
                       "the seek table's head is wrong");
    return ZT_OK;
}

static void rewind_to(struct zt_seek_table *table, uint64_t stored_offset)
{
    table->index = 0;
    table->frame = (struct zt_frame){.stored_offset = stored_offset};
}

/* Checks the rules of the entry just read. */
static enum zt_status check_entry(const struct zt_seek_table *table, struct zt_error *error)
{
    const struct zt_frame *frame = &table->frame;
    uint64_t at = table->entries_offset + (uint64_t)(table->index - 1) * table->entry_bytes;
    uint32_t first_length = table->first_length;
    bool is_last = table->index == table->count;

    assert(table->index > 0 && table->index <= table->count);
    assert(frame->decoded_offset <= table->decoded_length);
    if (frame->decoded_length > FRAME_DECODED_MAX)
        return zt_fail(error, ZT_CORRUPT, rule, at,
                       "a frame of %" PRIu32 " decoded bytes is above 16 MiB",
                       frame->decoded_length);
    if (is_last ? frame->decoded_length > first_length : frame->decoded_length != first_length)
        return zt_fail(error, ZT_CORRUPT, rule, at,
                       "frames of %" PRIu32 " and %" PRIu32 " decoded bytes", first_length,
                       frame->decoded_length);
    if (frame->stored_length < FRAME_STORED_MIN ||
        !zt_zstd_ratio_possible(frame->stored_length, frame->decoded_length))
        return zt_fail(error, ZT_CORRUPT, rule, at,
                       "%" PRIu32 " stored bytes cannot be a frame of %" PRIu32 " bytes",
                       frame->stored_length, frame->decoded_length);
    if (frame->stored_length > table->entries_offset - HEAD_BYTES - frame->stored_offset)
        return zt_fail(error, ZT_CORRUPT, rule, at,
                       "the frames of the seek table run into the table");
    if (frame->decoded_length > table->decoded_length - frame->decoded_offset)
        return zt_fail(error, ZT_CORRUPT, rule, table->entries_offset - HEAD_BYTES,
                       "the frames of the seek table decode to more than the %" PRIu64
                       " bytes declared",
                       table->decoded_length);
    return ZT_OK;
}

/* Checks the sums after the last entry. */
static enum zt_status check_sums(const struct zt_seek_table *table, struct zt_error *error)
{
    const struct zt_frame *frame = &table->frame;
    uint64_t table_at = table->entries_offset - HEAD_BYTES;

    if (frame->stored_offset + frame->stored_length != table_at)
        return zt_fail(error, ZT_CORRUPT, rule, table_at,
                       "the frames of the seek table end before the table");
    if (frame->decoded_offset + frame->decoded_length != table->decoded_length)
        return zt_fail(error, ZT_CORRUPT, rule, table_at,
                       "the frames of the seek table decode to %" PRIu64 " bytes, %" PRIu64
                       " are declared",
                       frame->decoded_offset + frame->decoded_length, table->decoded_length);
    return ZT_OK;
}

enum zt_status zt_seek_table_next(struct zt_seek_table *table, bool *out_more,
                                  struct zt_error *error)
{
    struct zt_frame *frame = &table->frame;
    uint32_t in_batch = table->index % ZT_SEEK_TABLE_BATCH;
    const uint8_t *entry = table->batch + in_batch * table->entry_bytes;

    if (table->index == table->count) {
        *out_more = false;
        return check_sums(table, error);
    }
    if (in_batch == 0) {
        uint32_t left = table->count - table->index;
        uint32_t part = left < ZT_SEEK_TABLE_BATCH ? left : ZT_SEEK_TABLE_BATCH;
        uint64_t at = table->entries_offset + (uint64_t)table->index * table->entry_bytes;
        enum zt_status status = zt_source_read_at(table->source, at, table->batch,
                                                  (size_t)part * table->entry_bytes, error);

        if (status != ZT_OK)
            return status;
    }
    assert(table->index < table->count);
    frame->stored_offset += frame->stored_length;
    frame->decoded_offset += frame->decoded_length;
    frame->stored_length = zt_load_le32(entry);
    frame->decoded_length = zt_load_le32(entry + 4);
    if (table->index == 0)
        table->first_length = frame->decoded_length;
    table->index++;
    *out_more = true;
    return check_entry(table, error);
}

enum zt_status zt_seek_table_open(const struct zt_component *component, struct zt_source *source,
                                  struct zt_seek_table *out_table, struct zt_error *error)
{
    bool more = true;
    enum zt_status status;

    out_table->source = source;
    out_table->decoded_length = component->decoded_length;
    status = read_bounds(component, out_table, error);
    if (status != ZT_OK)
        return status;
    rewind_to(out_table, component->offset);
    while (status == ZT_OK && more)
        status = zt_seek_table_next(out_table, &more, error);
    rewind_to(out_table, component->offset);
    return status;
}
