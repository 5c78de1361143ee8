/* A map from SHA-256s to numbers. */
#ifndef STORE_VERSIONS_HISTORY_SHAS_H
#define STORE_VERSIONS_HISTORY_SHAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sha_value {
    uint8_t sha256[32];
    bool is_used;
    uint64_t number;
};

/* All zero is an empty map. */
struct sha_set {
    struct sha_value *values;
    size_t capacity; /* 0, or a power of two */
    size_t count;
};

/* Returns the number of a SHA-256, 0 at first; NULL without memory. It is valid until the next
 * call. */
uint64_t *sha_set_put(struct sha_set *set, const uint8_t sha256[32]);
/* Returns NULL if the map does not have it. */
uint64_t *sha_set_find(const struct sha_set *set, const uint8_t sha256[32]);
/* Removes the values whose number is below `least`, if there is memory. */
void sha_set_keep_from(struct sha_set *set, uint64_t least);
void sha_set_free(struct sha_set *set);

#endif
