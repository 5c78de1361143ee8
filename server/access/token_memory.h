/* JSON Web Tokens that were valid a moment ago, so that a signature is checked once and not with
 * every request. One for each lease: on one thread, and gone with the version of access. */
#ifndef ACCESS_TOKEN_MEMORY_H
#define ACCESS_TOKEN_MEMORY_H

#include "access/grants.h"

struct token_memory;

/* NULL if out of memory: then nothing is remembered. */
struct token_memory *token_memory_new(void);
/* Takes NULL. */
void token_memory_free(struct token_memory *memory);

/* The grant of a token that is remembered and has not expired; NULL if there is none. memory may be
 * NULL. */
const struct grant *token_memory_find(const struct token_memory *memory,
                                      const struct token_hash *hash, int64_t now_s);

/* Remembers a token, perhaps in place of another one. memory may be NULL. */
void token_memory_keep(struct token_memory *memory, const struct token_hash *hash,
                       const struct grant *grant, int64_t expires_s);

#endif
