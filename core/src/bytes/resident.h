/* Reading a file from its mapping, without a system call and without a copy.
 *
 * Touching a mapping raises SIGBUS if the file was truncated or the disk fails, so such bytes are
 * only touched inside zt_touch, and only once the program has allowed it (zt_source_allow_mapped).
 * Callers fall back to zt_source_read_at. */
#ifndef ZT_BYTES_RESIDENT_H
#define ZT_BYTES_RESIDENT_H

#include "zt/source.h"

/* The mapped bytes at offset, if mapped reading is allowed and they are in the page cache now, else
 * NULL. For zt_touch. */
const uint8_t *zt_source_resident(struct zt_source *source, uint64_t offset, uint64_t length);

/* The same without a look at the page cache. */
const uint8_t *zt_source_mapped(struct zt_source *source, uint64_t offset, uint64_t length);

/* Whether bytes in a mapping are in the page cache now. */
bool zt_is_resident(const uint8_t *bytes, uint64_t length);

/* Calls touch(context), which may touch mapped bytes. False if some of them could not be read:
 * touch has then ended in the middle, so it must hold no lock, allocate nothing, and leave nothing
 * behind that would be used half-made. */
bool zt_touch(void (*touch)(void *context), void *context);

#endif
