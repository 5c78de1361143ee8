/* Shards, in which the Hub's clients describe the contents of their files: a header, and then
 * records of 48 bytes with little-endian numbers. For each file there are
 *
 *     its own hash (32), flags u32, number of terms u32, 8 unused
 *     each term: hash of a xorb (32), flags u32, bytes u32, first chunk u32, end of chunks u32
 *     as many records again, which are not needed, if bit 31 of the flags is set
 *     its SHA-256 (32, as four numbers of 64 bits), 16 unused, if bit 30 is set
 *
 * and a record that begins with 32 bytes of FF ends the list. After that the xorbs are described,
 * which the server already has. */
#ifndef HUB_XET_SHARD_H
#define HUB_XET_SHARD_H

#include "zt/source.h"

#define XET_SHARD_RECORD_BYTES 48
/* Clients split them at 64 MiB, but a shard for a single file cannot be split. */
#define XET_SHARD_BYTES_MAX ((uint64_t)128 << 20)
/* Records per read. */
#define XET_SHARD_WINDOW_RECORDS 1024

struct xet_shard {
    /* Private. */
    struct zt_source *source;
    uint64_t offset; /* of its records in the source */
    uint64_t count;
    uint64_t first; /* record in the window */
    uint32_t window_count;
    uint8_t window[XET_SHARD_WINDOW_RECORDS * XET_SHARD_RECORD_BYTES];
};

struct xet_shard_file {
    bool is_end; /* there are no more files; no other field is set */
    bool has_sha256;
    uint8_t sha256[32];
    uint32_t term_count;
    uint64_t record; /* the file's own */
    uint64_t next;   /* the record after it */
};

struct xet_shard_term {
    uint8_t xorb[32];
    uint32_t bytes; /* decoded */
    uint32_t first; /* chunk */
    uint32_t end;
};

/* Opens a shard in a source, which is borrowed. This function and the following ones return
 * ZT_INVALID, or the source's error. */
enum zt_status xet_shard_open(struct xet_shard *shard, struct zt_source *source, uint64_t offset,
                              uint64_t length, struct zt_error *error);

/* Reads the file that begins with this record: 0, or `next` of the previous file. */
enum zt_status xet_shard_file_read(struct xet_shard *shard, uint64_t record,
                                   struct xet_shard_file *out_file, struct zt_error *error);

/* Reads a term of a file, index < term_count. Its range of chunks is not empty. */
enum zt_status xet_shard_term_read(struct xet_shard *shard, const struct xet_shard_file *file,
                                   uint32_t index, struct xet_shard_term *out_term,
                                   struct zt_error *error);

#endif
