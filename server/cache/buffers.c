#include "cache/buffers.h"

#include <assert.h>
#include <stdlib.h>

#include "cache/cache.h"

/* Lies in the buffer itself. */
struct free_buffer {
    struct free_buffer *next;
};

static const uint64_t sizes[BUFFER_SIZES] = {CACHE_BLOCK_BYTES, CACHE_RUN_BYTES};

static unsigned size_for(uint64_t bytes)
{
    assert(bytes > 0 && bytes <= CACHE_RUN_BYTES);
    return bytes <= CACHE_BLOCK_BYTES ? 0 : 1;
}

uint64_t buffer_bytes(uint64_t bytes)
{
    return sizes[size_for(bytes)];
}

uint8_t *buffer_take(struct buffer_pool *pool, uint64_t bytes)
{
    unsigned size = size_for(bytes);
    struct free_buffer *buffer = pool->free[size];

    pool->was_used = true;
    if (buffer == NULL)
        return malloc(sizes[size]);
    pool->free[size] = buffer->next;
    return (uint8_t *)buffer;
}

void buffer_give(struct buffer_pool *pool, uint8_t *buffer, uint64_t bytes)
{
    struct free_buffer *given = (struct free_buffer *)(void *)buffer;
    unsigned size = size_for(bytes);

    assert(buffer != NULL);
    given->next = pool->free[size];
    pool->free[size] = given;
}

void buffers_trim(struct buffer_pool *pool)
{
    if (!pool->was_used)
        buffers_free(pool);
    pool->was_used = false;
}

void buffers_free(struct buffer_pool *pool)
{
    for (unsigned size = 0; size < BUFFER_SIZES; size++)
        while (pool->free[size] != NULL) {
            struct free_buffer *buffer = pool->free[size];

            pool->free[size] = buffer->next;
            free(buffer);
        }
}
