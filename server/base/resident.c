/* A table of blocks, addressed by their place in memory; what falls on the same entry replaces what
 * was there. */
#include "base/resident.h"

#include <assert.h>
#include <sys/mman.h>

#define PAGE_BYTES  4096u
#define BLOCK_PAGES 16u
#define BLOCK_BYTES ((uint64_t)PAGE_BYTES * BLOCK_PAGES)
#define BELIEVED_MS 1000u

/* The pages of at most one block. 0 if the pages of the system are larger than PAGE_BYTES, since
 * then the call may fail. */
static uint16_t ask(const uint8_t *bytes, uint64_t length)
{
    unsigned char states[BLOCK_PAGES];
    const size_t count = (size_t)((length + PAGE_BYTES - 1) / PAGE_BYTES);
    uint16_t pages = 0;

    assert(count > 0 && count <= BLOCK_PAGES);
    if (mincore((void *)(uintptr_t)bytes, (size_t)length, states) != 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        pages |= (uint16_t)((states[i] & 1u) << i);
    return pages;
}

static uint16_t find(struct resident *resident, uint64_t now_ms, const uint8_t *bytes,
                     uint64_t length)
{
    struct resident_block *block =
        &resident->blocks[((uintptr_t)bytes / BLOCK_BYTES) % RESIDENT_BLOCKS];

    if (block->bytes != bytes || (uint32_t)now_ms - block->known_ms >= BELIEVED_MS)
        *block = (struct resident_block){bytes, (uint32_t)now_ms, ask(bytes, length)};
    return block->pages;
}

/* The bits of the pages that hold the bytes from first to last of a block. */
static uint16_t pages_between(uint64_t first, uint64_t last)
{
    const uint32_t upto = (UINT32_C(2) << (last / PAGE_BYTES)) - 1;

    return (uint16_t)(upto & ~((UINT32_C(1) << (first / PAGE_BYTES)) - 1));
}

bool resident_holds(struct resident *resident, uint64_t now_ms, const uint8_t *mapping,
                    uint64_t mapped, uint64_t offset, uint64_t length)
{
    const uint64_t end = offset + length;
    uint64_t start = offset / BLOCK_BYTES * BLOCK_BYTES;

    assert(length > 0 && end <= mapped);
    for (; start < end; start += BLOCK_BYTES) {
        const uint64_t left = mapped - start;
        const uint64_t first = offset > start ? offset - start : 0;
        const uint64_t last = (end - start < BLOCK_BYTES ? end - start : BLOCK_BYTES) - 1;
        const uint16_t needed = pages_between(first, last);

        if ((find(resident, now_ms, mapping + start, left < BLOCK_BYTES ? left : BLOCK_BYTES) &
             needed) != needed)
            return false;
    }
    return true;
}
