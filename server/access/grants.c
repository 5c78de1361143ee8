/* Finds the line of the tokens file that a client's proof belongs to. */
#include "access/grants.h"

#include <assert.h>
#include <string.h>

#include "access/grants_state.h"
#include "base/glob.h"
#include "input/ticket.h"
#include "zt/digest.h"

bool token_hash_make(struct zt_text token, struct token_hash *out_hash)
{
    struct zt_digest digest;

    if (zt_digest_of(ZT_DIGEST_SHA256, token.bytes, token.length, &digest) != ZT_OK)
        return false;
    assert(digest.length_bytes == sizeof(*out_hash));
    memcpy(out_hash, digest.bytes, sizeof(*out_hash));
    return true;
}

/* Compares with every token's hash, each in the same time. */
const struct grant *grants_of_token(const struct grants *grants, const struct token_hash *hash)
{
    const struct grant *found = NULL;

    for (size_t i = 0; i < grants->count; i++) {
        const struct entry *entry = &grants->entries[i];

        if (entry->proof == PROOF_TOKEN &&
            secret_equal(hash, &entry->is.sha256, sizeof(entry->is.sha256))) {
            /* No two lines have the same hash. */
            assert(found == NULL);
            found = &entry->grant;
        }
    }
    return found;
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

const struct grant *grants_of_name(const struct grants *grants, const char *name)
{
    for (size_t i = 0; i < grants->count; i++)
        if (strcmp(grants->entries[i].grant.name, name) == 0)
            return &grants->entries[i].grant;
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

bool grant_covers_all(const struct grant *grant, struct zt_text beginning)
{
    return grant->models == NULL || glob_set_matches_all_below(grant->models, beginning);
}
