/* SHA-256s of representations that were computed because a client wanted them, by strong ETag: a bounded number, the
 * least recently used goes first. Safe from any thread. */
#ifndef HTTP_DIGEST_MEMORY_H
#define HTTP_DIGEST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct digest_memory;

/* NULL when memory is out. */
struct digest_memory *digest_memory_new(void);
void digest_memory_free(struct digest_memory *memory);

bool digest_memory_find(struct digest_memory *memory, const char *etag, uint8_t out_sha256[32]);
void digest_memory_keep(struct digest_memory *memory, const char *etag, const uint8_t sha256[32]);

#endif
