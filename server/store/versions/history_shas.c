/* An open-addressed table: the first bytes of a SHA-256 are its hash. Clients can choose them only
 * by hashing, and long runs then take that many hashes. */
#include "store/versions/history_shas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_LEAST 64u

/* The place of a SHA-256, or the free one where it would be. */
static struct sha_value *place(const struct sha_set *set, const uint8_t sha256[32])
{
    uint64_t at;

    assert(set->capacity > 0 && set->count < set->capacity);
    memcpy(&at, sha256, sizeof(at));
    for (;; at++) {
        struct sha_value *value = &set->values[at & (set->capacity - 1)];

        if (!value->is_used || memcmp(value->sha256, sha256, sizeof(value->sha256)) == 0)
            return value;
    }
}

static bool resize(struct sha_set *set, size_t capacity, uint64_t least)
{
    struct sha_set resized = {calloc(capacity, sizeof(*resized.values)), capacity, 0};

    assert((capacity & (capacity - 1)) == 0);
    if (resized.values == NULL)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->values[i].is_used && set->values[i].number >= least) {
            *place(&resized, set->values[i].sha256) = set->values[i];
            resized.count++;
        }
    assert(resized.count < capacity);
    free(set->values);
    *set = resized;
    return true;
}

uint64_t *sha_set_put(struct sha_set *set, const uint8_t sha256[32])
{
    struct sha_value *value;

    if (2 * (set->count + 1) > set->capacity &&
        !resize(set, set->capacity > 0 ? 2 * set->capacity : CAPACITY_LEAST, 0))
        return NULL;
    value = place(set, sha256);
    if (!value->is_used) {
        value->is_used = true;
        memcpy(value->sha256, sha256, sizeof(value->sha256));
        set->count++;
    }
    assert(2 * set->count <= set->capacity);
    return &value->number;
}

uint64_t *sha_set_find(const struct sha_set *set, const uint8_t sha256[32])
{
    struct sha_value *value = set->capacity > 0 ? place(set, sha256) : NULL;

    return value != NULL && value->is_used ? &value->number : NULL;
}

void sha_set_keep_from(struct sha_set *set, uint64_t least)
{
    size_t left = 0;
    size_t capacity = CAPACITY_LEAST;

    for (size_t i = 0; i < set->capacity; i++)
        left += set->values[i].is_used && set->values[i].number >= least;
    if (left == 0) {
        sha_set_free(set);
        return;
    }
    assert(left <= set->count);
    while (capacity < 2 * (left + 1))
        capacity *= 2;
    (void)resize(set, capacity, least);
}

void sha_set_free(struct sha_set *set)
{
    free(set->values);
    *set = (struct sha_set){.count = 0};
}
