/* The seek table of zt.zstd-seekable/1 (zTensor 2 section 6), walked entry by entry.
 *
 * One pass with a small buffer checks the whole table, so that nothing is ever reserved from its
 * count; a walk then gives its frames one after another. */
#ifndef ZT_CODING_SEEK_TABLE_H
#define ZT_CODING_SEEK_TABLE_H

#include "coding/zstd_stream.h"
#include "zt/decode.h"

/* The rules that a frame of this encoding breaks if it does not decode. */
extern const struct zt_zstd_rules zt_seekable_rules;

/* Entries read at a time: 4 KiB of the wider entries. */
#define ZT_SEEK_TABLE_BATCH 341
#define ZT_SEEK_ENTRY_MAX   12

struct zt_seek_table {
    struct zt_source *source;
    uint64_t entries_offset; /* absolute */
    uint32_t count;
    uint32_t entry_bytes; /* 8, or 12 with the column of checksums */
    /* The walk. */
    uint32_t index;
    struct zt_frame frame;
    uint8_t batch[ZT_SEEK_TABLE_BATCH * ZT_SEEK_ENTRY_MAX];
};

/* Reads and checks the table; the walk is then before the first frame. ZT_CORRUPT with "zt2 §6
 * SeekTable", ZT_IO. */
enum zt_status zt_seek_table_open(const struct zt_component *component, struct zt_source *source,
                                  struct zt_seek_table *out_table, struct zt_error *error);

/* The next frame, in table->frame; *out_more is false after the last one. */
enum zt_status zt_seek_table_next(struct zt_seek_table *table, bool *out_more,
                                  struct zt_error *error);

#endif
