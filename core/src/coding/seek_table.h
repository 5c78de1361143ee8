/* The seek table of zt.zstd-seekable/1 (zTensor 2 section 6), walked entry by entry.
 *
 * The whole table is first checked in one pass with a small buffer, so no memory is reserved for
 * its count. A second walk then returns its frames one by one. It reads the file again, which may
 * have changed, so it checks the same rules. */
#ifndef ZT_CODING_SEEK_TABLE_H
#define ZT_CODING_SEEK_TABLE_H

#include "coding/zstd_stream.h"
#include "zt/decode.h"

/* The rules reported for a frame of this encoding that does not decode. */
extern const struct zt_zstd_rules zt_seekable_rules;

/* Number of entries per read: 4 KiB of the wider entries. */
#define ZT_SEEK_TABLE_BATCH 341
#define ZT_SEEK_ENTRY_MAX   12

struct zt_seek_table {
    struct zt_source *source;
    uint64_t entries_offset; /* absolute */
    uint32_t count;
    uint32_t entry_bytes;    /* 8, or 12 with checksums */
    uint64_t decoded_length; /* declared for all frames together */
    /* State of the walk. */
    uint32_t index;
    uint32_t first_length; /* decoded, of the first frame; only the last frame may be shorter */
    struct zt_frame frame;
    uint8_t batch[ZT_SEEK_TABLE_BATCH * ZT_SEEK_ENTRY_MAX];
};

/* Reads and checks the table, and prepares a walk from the first frame. ZT_CORRUPT with "zt2 §6
 * SeekTable", ZT_IO. */
enum zt_status zt_seek_table_open(const struct zt_component *component, struct zt_source *source,
                                  struct zt_seek_table *out_table, struct zt_error *error);

/* Reads the next frame into table->frame and checks it. *out_more is false after the last frame;
 * then the sums are checked too. ZT_CORRUPT with "zt2 §6 SeekTable", ZT_IO. */
enum zt_status zt_seek_table_next(struct zt_seek_table *table, bool *out_more,
                                  struct zt_error *error);

#endif
