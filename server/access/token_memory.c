/* A table with one place for each hash; the last token there stays. */
#include "access/token_memory.h"

#include <stdlib.h>
#include <string.h>

/* More clients than a loop usually has; 48 bytes each. */
#define PLACES 512

struct place {
    struct token_hash hash;
    const struct grant *grant; /* NULL: free */
    int64_t expires_s;
};

struct token_memory {
    struct place places[PLACES];
};

struct token_memory *token_memory_new(void)
{
    return calloc(1, sizeof(struct token_memory));
}

void token_memory_free(struct token_memory *memory)
{
    free(memory);
}

static size_t place_of(const struct token_hash *hash)
{
    return hash->words[0] % PLACES;
}

const struct grant *token_memory_find(const struct token_memory *memory,
                                      const struct token_hash *hash, int64_t now_s)
{
    const struct place *place;

    if (memory == NULL)
        return NULL;
    place = &memory->places[place_of(hash)];
    if (place->grant == NULL || now_s >= place->expires_s ||
        memcmp(&place->hash, hash, sizeof(*hash)) != 0)
        return NULL;
    return place->grant;
}

void token_memory_keep(struct token_memory *memory, const struct token_hash *hash,
                       const struct grant *grant, int64_t expires_s)
{
    if (memory != NULL)
        memory->places[place_of(hash)] = (struct place){*hash, grant, expires_s};
}
