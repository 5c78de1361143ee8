/* Decides into how many parts an object is split. */
#ifndef HUB_WRITE_LFS_PARTS_H
#define HUB_WRITE_LFS_PARTS_H

#include <stdint.h>

#define LFS_PARTS_MAX 1000

/* Returns the length of each part except the last: part_bytes, or more if there would be too many
 * parts. Returns 0 if the object is too small for parts. */
uint64_t lfs_part_length(uint64_t length, uint64_t part_bytes);
uint64_t lfs_part_count(uint64_t length, uint64_t part_length);

/* Five digits or more: the key under which clients find a part's address. */
#define LFS_PART_KEY_SIZE 24
void lfs_part_key(uint64_t part, char out_key[LFS_PART_KEY_SIZE]);

/* The ETag in the response to a part (numbered from 1). Only whole objects are hashed, so the ETag
 * is just the part's number: a client that sends back another one has confused two parts. */
#define LFS_PART_TAG_SIZE 24
void lfs_part_tag(uint64_t part, char out_tag[LFS_PART_TAG_SIZE]);

#endif
