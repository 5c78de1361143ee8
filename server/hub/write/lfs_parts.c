#include "hub/write/lfs_parts.h"

#include <assert.h>
#include <stdio.h>

uint64_t lfs_part_count(uint64_t length, uint64_t part_length)
{
    assert(part_length > 0 || length == 0);
    return length > 0 ? (length - 1) / part_length + 1 : 0;
}

uint64_t lfs_part_length(uint64_t length, uint64_t part_bytes)
{
    const uint64_t least = (length + LFS_PARTS_MAX - 1) / LFS_PARTS_MAX;

    if (part_bytes == 0 || length <= part_bytes)
        return 0;
    return least > part_bytes ? least : part_bytes;
}

void lfs_part_key(uint64_t part, char out_key[LFS_PART_KEY_SIZE])
{
    snprintf(out_key, LFS_PART_KEY_SIZE, "%05llu", (unsigned long long)part);
}

void lfs_part_tag(uint64_t part, char out_tag[LFS_PART_TAG_SIZE])
{
    snprintf(out_tag, LFS_PART_TAG_SIZE, "\"%llu\"", (unsigned long long)part);
}
