/* The index of a version: which blocks are in its file, with their XXH3-64. Never synced: after a
 * crash it may name absent blocks, so each record is only a claim until the block matched.
 *
 *   header   8 bytes "ztblocks", key (16), size of the version (8), block size (8), XXH3 of these
 *   record   XXH3 of the block (8), number of the block (4), check (4)
 *
 * Little-endian. The number's highest bit marks the removal of an extent, whose number it then is.
 * The check is the lower half of the XXH3 of key and record. Records of which any bit is wrong are
 * passed over; the last one of a block counts. */
#ifndef CACHE_INDEX_FILE_H
#define CACHE_INDEX_FILE_H

#include <stddef.h>

#include "cache/folder.h"

struct index_block {
    uint64_t checksum;
    uint32_t block;
};

/* Called for each record. */
struct index_reader {
    void (*block)(void *context, uint32_t block, uint64_t checksum);
    void (*removed)(void *context, uint32_t extent);
    void *context;
};

/* Reads the index of a version. False: there is none that can be used. *out_records: how many
 * records it has, the useless ones included. */
bool index_load(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                uint64_t size_bytes, const struct index_reader *reader, uint64_t *out_records);

/* Replaces the index by these blocks. False with errno. */
bool index_write(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                 uint64_t size_bytes, const struct index_block *blocks, size_t count);

/* Adds records. Failing only means that these blocks are not found again. */
void index_append(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                  const struct index_block *blocks, size_t count);
void index_append_removal(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                          uint32_t extent);

#endif
