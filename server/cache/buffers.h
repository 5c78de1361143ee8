/* Memory for blocks on their way, used again and again: new memory of that size would be cleared by
 * the kernel each time. Two sizes. There is no lock here; the cache's lock covers it. */
#ifndef CACHE_BUFFERS_H
#define CACHE_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#define BUFFER_SIZES 2

struct free_buffer;

/* All zero is an empty pool. */
struct buffer_pool {
    struct free_buffer *free[BUFFER_SIZES];
    bool was_used; /* since the last buffers_trim */
};

/* What a buffer for so many bytes takes. bytes: at most CACHE_RUN_BYTES. */
uint64_t buffer_bytes(uint64_t bytes);
/* NULL if out of memory. */
uint8_t *buffer_take(struct buffer_pool *pool, uint64_t bytes);
void buffer_give(struct buffer_pool *pool, uint8_t *buffer, uint64_t bytes);
/* Frees unused buffers, unless buffers were taken since the last call. */
void buffers_trim(struct buffer_pool *pool);
void buffers_free(struct buffer_pool *pool);

#endif
