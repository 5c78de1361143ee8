/* Which pages of a mapped file are in memory, as the kernel says and as it said a moment ago.
 *
 * Bytes that were asked about are about to be sent, which keeps their pages in memory for far
 * longer than the answer is believed. Should they be dropped all the same, whoever touches them
 * waits for the disk. */
#ifndef BASE_PAGE_MEMORY_H
#define BASE_PAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_MEMORY_BLOCKS 1024u

/* What is known of the 16 pages of a block. */
struct page_block {
    const uint8_t *bytes;
    uint32_t known_ms; /* the lower bits of the time when the kernel was asked */
    uint16_t pages;    /* a bit for each page in memory */
};

/* Of one thread. All members are 0 at first. */
struct page_memory {
    struct page_block blocks[PAGE_MEMORY_BLOCKS];
};

/* Whether length (not 0) bytes from offset of a mapping of mapped bytes are in memory. Takes one
 * system call for each MiB of which something was not asked about within the last second. now_ms:
 * monotonic, not 0. */
bool page_memory_holds(struct page_memory *memory, uint64_t now_ms, const uint8_t *mapping,
                       uint64_t mapped, uint64_t offset, uint64_t length);

#endif
