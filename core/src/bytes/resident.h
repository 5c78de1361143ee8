/* Reading a file from its mapping, without a copy.
 *
 * Touching a mapping raises SIGBUS if the file was truncated or the disk fails, so such bytes are
 * only touched inside zt_source_touch, and only once the program has allowed it
 * (zt_source_allow_mapped). Callers fall back to zt_source_read_at. */
#ifndef ZT_BYTES_RESIDENT_H
#define ZT_BYTES_RESIDENT_H

#include "zt/source.h"

/* The mapped bytes at offset, if mapped reading is allowed and they are in the page cache now, else
 * NULL. For zt_source_touch. */
const uint8_t *zt_source_resident(struct zt_source *source, uint64_t offset, uint64_t length);

/* The same without a look at the page cache. */
const uint8_t *zt_source_mapped(struct zt_source *source, uint64_t offset, uint64_t length);

/* Calls touch(context), which may touch the source's mapped bytes: `length` of them from offset on.
 * ZT_IO if they could not be read, or the file no longer reached to their end when touch was done.
 * What touch has taken is then worthless, even if it met no missing byte: the last page of a file
 * is filled up with zeros. If it met one it has ended in the middle, so it must hold no lock,
 * allocate nothing, and leave nothing behind that would be used half-made. */
enum zt_status zt_source_touch(struct zt_source *source, uint64_t offset, uint64_t length,
                               void (*touch)(void *context), void *context, struct zt_error *error);

#endif
