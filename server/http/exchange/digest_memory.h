/* SHA-256s of representations that were computed because a client wanted them. Their number is
 * bounded; the least recently used is evicted first. From any thread.
 *
 * The key is the target and the strong ETag, since a tag is unique only among the representations
 * of one resource. */
#ifndef HTTP_EXCHANGE_DIGEST_MEMORY_H
#define HTTP_EXCHANGE_DIGEST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define DIGEST_MEMORY_ENTRIES 4096

struct digest_memory;

/* NULL when out of memory. */
struct digest_memory *digest_memory_new(void);
/* Takes NULL. */
void digest_memory_free(struct digest_memory *memory);

bool digest_memory_find(struct digest_memory *memory, const char *target, const char *etag,
                        uint8_t out_sha256[32]);

/* Does nothing if out of memory or the target is very long. */
void digest_memory_keep(struct digest_memory *memory, const char *target, const char *etag,
                        const uint8_t sha256[32]);

#endif
