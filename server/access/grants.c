/* Finds the line of the tokens file that a client's proof belongs to. */
#include "access/grants.h"

#include <assert.h>
#include <string.h>

#include "access/grants_state.h"
#include "base/glob.h"
#include "zt/digest.h"

bool token_hash_make(struct zt_text token, struct token_hash *out_hash)
{
    struct zt_digest digest;
    struct zt_hasher *hasher;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return false;
    zt_hasher_update(hasher, token.bytes, token.length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    assert(digest.length_bytes == sizeof(*out_hash));
    memcpy(out_hash, digest.bytes, sizeof(*out_hash));
    return true;
}

/* All ones if the hashes are equal, else 0, without a branch. */
static uint64_t equal_mask(const struct token_hash *a, const struct token_hash *b)
{
    uint64_t difference = 0;

    for (unsigned i = 0; i < sizeof(a->words) / sizeof(a->words[0]); i++)
        difference |= a->words[i] ^ b->words[i];
    return ((difference | (0 - difference)) >> 63) - 1;
}

/* Every token's hash is looked at, and no branch depends on a comparison. */
const struct grant *grants_of_token(const struct grants *grants, const struct token_hash *hash)
{
    uint64_t found = 0; /* 1 + the index */

    for (size_t i = 0; i < grants->count; i++)
        if (grants->entries[i].proof == PROOF_TOKEN)
            found |= equal_mask(hash, &grants->entries[i].is.sha256) & (i + 1);
    /* No two lines have the same hash. */
    assert(found <= grants->count);
    return found > 0 ? &grants->entries[found - 1].grant : NULL;
}

static bool has_name(const char *const *names, struct zt_text name)
{
    for (; *names != NULL; names++)
        if (zt_text_is(name, *names))
            return true;
    return false;
}

const struct grant *grants_of_certificate(const struct grants *grants, const char *const *names)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct entry *entry = &grants->entries[i];

        if (entry->proof == PROOF_CERTIFICATE && has_name(names, entry->is.name))
            return &entry->grant;
    }
    return NULL;
}

const struct grant *grants_of_subject(const struct grants *grants, struct zt_text subject)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct entry *entry = &grants->entries[i];

        if (entry->proof == PROOF_SUBJECT && glob_set_matches(entry->is.subject.set, subject))
            return &entry->grant;
    }
    return NULL;
}

bool grants_limit_models(const struct grants *grants)
{
    for (size_t i = 0; i < grants->count; i++)
        if (grants->entries[i].grant.models != NULL)
            return true;
    return false;
}

bool grant_covers(const struct grant *grant, struct zt_text model)
{
    return grant->models == NULL || glob_set_matches(grant->models, model);
}

bool grant_covers_some(const struct grant *grant, struct zt_text beginning)
{
    return grant->models == NULL || glob_set_can_begin(grant->models, beginning);
}
