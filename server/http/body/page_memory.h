/* Remembers for a second which pages of a mapped file the kernel reported as resident, so that a
 * small answer needs no system call (docs/internals/decisions/hot-path.md).
 *
 * The bytes are about to be sent, which keeps their pages in memory for much longer. If they are
 * dropped all the same, the thread that reads them waits for the disk. */
#ifndef HTTP_BODY_PAGE_MEMORY_H
#define HTTP_BODY_PAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/body/place.h"

#define PAGE_MEMORY_BLOCKS 1024u

/* Belongs to one thread. All members are 0 at first. */
struct page_memory {
    struct page_block {
        const uint8_t *bytes;
        uint32_t known_ms; /* the lower bits of the time when the kernel was asked */
        uint16_t pages;    /* a bit for each of the 16 pages that is in memory */
    } blocks[PAGE_MEMORY_BLOCKS];
};

/* Returns true if length (not 0) bytes from offset of a mapping of mapped bytes are in memory.
 * Makes one system call for each MiB that has pages not checked within the last second. now_ms:
 * monotonic, not 0. */
bool page_memory_holds(struct page_memory *memory, uint64_t now_ms, const uint8_t *mapping,
                       uint64_t mapped, uint64_t offset, uint64_t length);

/* Returns a segment's bytes in memory or in the mapping of its file; NULL if it has none. */
const uint8_t *segment_bytes(const struct segment *segment);

/* Returns true if all segments are memory. */
bool answer_is_memory(const struct answer *answer);

/* Returns true if all bytes are in memory, or mapped and in the page cache. Asks the
 * kernel (about 1 us per 64 KiB) about pages that memory does not know. */
bool answer_is_resident(const struct answer *answer, struct page_memory *memory, uint64_t now_ms);

#endif
