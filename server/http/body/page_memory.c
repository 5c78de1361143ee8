/* A hash table of blocks by address. A block replaces the one that had its entry. */
#include "http/body/page_memory.h"

#include <assert.h>
#include <sys/mman.h>

#define PAGE_BYTES  4096u
#define BLOCK_PAGES 16u
#define BLOCK_BYTES ((uint64_t)PAGE_BYTES * BLOCK_PAGES)
#define BELIEVED_MS 1000u

/* Asked about in one call: 1 MiB. */
#define BLOCKS_AT_ONCE 16u

static struct page_block *block_of(struct page_memory *memory, const uint8_t *bytes)
{
    return &memory->blocks[((uintptr_t)bytes / BLOCK_BYTES) % PAGE_MEMORY_BLOCKS];
}

/* Returns a bit for each page of a block that is in memory. */
static uint16_t pages_of(const unsigned char *states, size_t count)
{
    uint16_t pages = 0;

    for (size_t i = 0; i < count && i < BLOCK_PAGES; i++)
        pages |= (uint16_t)((states[i] & 1u) << i);
    return pages;
}

/* Records the pages of at most BLOCKS_AT_ONCE blocks. Records none if the system's pages are larger
 * than PAGE_BYTES, since the call may fail then. */
static void ask(struct page_memory *memory, uint64_t now_ms, const uint8_t *bytes, uint64_t length)
{
    unsigned char states[BLOCKS_AT_ONCE * BLOCK_PAGES] = {0};
    const size_t count = (size_t)((length + PAGE_BYTES - 1) / PAGE_BYTES);
    const bool known = mincore((void *)(uintptr_t)bytes, (size_t)length, states) == 0;

    assert(count > 0 && count <= sizeof(states));
    for (size_t i = 0; i < count; i += BLOCK_PAGES, bytes += BLOCK_BYTES)
        *block_of(memory, bytes) = (struct page_block){
            bytes, (uint32_t)now_ms, known ? pages_of(states + i, count - i) : (uint16_t)0};
}

/* Returns the pages of the block at bytes. length: from there to the end of the range that the
 * caller checks, in whole blocks. */
static uint16_t find(struct page_memory *memory, uint64_t now_ms, const uint8_t *bytes,
                     uint64_t length)
{
    const struct page_block *block = block_of(memory, bytes);

    if (block->bytes != bytes || (uint32_t)now_ms - block->known_ms >= BELIEVED_MS)
        ask(memory, now_ms, bytes,
            length < BLOCKS_AT_ONCE * BLOCK_BYTES ? length : BLOCKS_AT_ONCE * BLOCK_BYTES);
    return block->pages;
}

/* Returns the bits of the pages that hold the bytes from first to last of a block. */
static uint16_t pages_between(uint64_t first, uint64_t last)
{
    const uint32_t upto = (UINT32_C(2) << (last / PAGE_BYTES)) - 1;

    return (uint16_t)(upto & ~((UINT32_C(1) << (first / PAGE_BYTES)) - 1));
}

bool page_memory_holds(struct page_memory *memory, uint64_t now_ms, const uint8_t *mapping,
                       uint64_t mapped, uint64_t offset, uint64_t length)
{
    const uint64_t end = offset + length;
    const uint64_t whole = (end + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    const uint64_t known = whole < mapped ? whole : mapped;
    uint64_t start = offset / BLOCK_BYTES * BLOCK_BYTES;

    assert(length > 0 && end <= mapped);
    for (; start < end; start += BLOCK_BYTES) {
        const uint64_t first = offset > start ? offset - start : 0;
        const uint64_t last = (end - start < BLOCK_BYTES ? end - start : BLOCK_BYTES) - 1;
        const uint16_t needed = pages_between(first, last);

        if ((find(memory, now_ms, mapping + start, known - start) & needed) != needed)
            return false;
    }
    return true;
}

/* --- answers --- */

const uint8_t *segment_bytes(const struct segment *segment)
{
    const uint8_t *mapping;

    if (segment->kind == SEGMENT_MEMORY)
        return segment->bytes;
    mapping = zt_source_map(segment->source);
    return mapping != NULL ? mapping + segment->offset : NULL;
}

bool answer_is_memory(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++)
        if (answer->segments[i].kind != SEGMENT_MEMORY)
            return false;
    return true;
}

bool answer_is_resident(const struct answer *answer, struct page_memory *memory, uint64_t now_ms)
{
    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        if (segment_bytes(segment) == NULL ||
            (segment->kind != SEGMENT_MEMORY &&
             !page_memory_holds(memory, now_ms, zt_source_map(segment->source),
                                zt_source_size(segment->source), segment->offset, segment->length)))
            return false;
    }
    return true;
}
