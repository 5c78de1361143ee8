/* Into how many parts an object is cut that is sent in parts. */
#ifndef HUB_WRITE_LFS_PARTS_H
#define HUB_WRITE_LFS_PARTS_H

#include <stdint.h>

#define LFS_PARTS_MAX 1000

/* The length of each part but the last: part_bytes, or more so that there are not too many parts.
 * 0: the object is not worth parts. */
uint64_t lfs_part_length(uint64_t length, uint64_t part_bytes);
uint64_t lfs_part_count(uint64_t length, uint64_t part_length);

/* Five digits or more, under which clients look for a part's address. */
#define LFS_PART_KEY_SIZE 24
void lfs_part_key(uint64_t part, char out_key[LFS_PART_KEY_SIZE]);

/* The tag that a part (from 1) is answered with. Objects are hashed as a whole, so that it says no
 * more than which part it is: whoever sends back another has mixed something up. */
#define LFS_PART_TAG_SIZE 24
void lfs_part_tag(uint64_t part, char out_tag[LFS_PART_TAG_SIZE]);

#endif
