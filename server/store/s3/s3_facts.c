/* Facts about versions, which replicas share (.ztserve/facts/). A list of the bucket includes their
 * keys, so that missing facts are not requested. The same set has the config.json of folders. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "store/s3/s3_listing.h"
#include "zt/digest.h"

/* Large enough for the digests of hundreds of thousands of components. */
#define FACT_BYTES_MOST ((size_t)64 << 20)
/* Facts about deleted versions may remain for a long time. Above this number, their keys are not
 * remembered. */
#define FACTS_MOST ((size_t)1 << 20)

void s3_fact_key(const struct file_identity *identity, const char *kind,
                 char out_key[S3_FACT_KEY_SIZE])
{
    const uint64_t inputs[] = {identity->inode, identity->size_bytes,
                               (uint64_t)identity->modified_ns};
    uint64_t words[2];

    zt_xxh3_128(inputs, sizeof(inputs), words);
    snprintf(out_key, S3_FACT_KEY_SIZE, S3_FACTS_PREFIX "%016" PRIx64 "%016" PRIx64 ".%s", words[0],
             words[1], kind);
}

/* --- which there are --- */

static uint64_t name_of(const char *key)
{
    uint64_t words[2];

    zt_xxh3_128(key, strlen(key), words);
    return words[0];
}

/* Returns true for "folder/config.json", which makes a folder a repository. */
static bool is_config(const char *key)
{
    const char *slash = strchr(key, '/');

    return slash != NULL && strcmp(slash, "/config.json") == 0;
}

void s3_facts_take(struct s3_facts *facts, const char *key)
{
    if ((strncmp(key, S3_FACTS_PREFIX, sizeof(S3_FACTS_PREFIX) - 1) != 0 && !is_config(key)) ||
        facts->is_incomplete)
        return;
    if (facts->count == facts->capacity) {
        const size_t capacity = facts->capacity == 0 ? 64 : 2 * facts->capacity;
        uint64_t *names =
            capacity <= FACTS_MOST ? realloc(facts->names, capacity * sizeof(*facts->names)) : NULL;

        facts->is_incomplete = names == NULL;
        if (names == NULL)
            return;
        facts->names = names;
        facts->capacity = capacity;
    }
    facts->names[facts->count++] = name_of(key);
}

static int compare_names(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a;
    const uint64_t other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

void s3_facts_replace(struct s3_listing *listing, struct s3_facts *facts)
{
    struct s3_facts before;

    if (facts->count > 1)
        qsort(facts->names, facts->count, sizeof(*facts->names), compare_names);
    facts->is_listed = !facts->is_incomplete;
    pthread_mutex_lock(&listing->lock);
    before = listing->facts;
    listing->facts = *facts;
    pthread_mutex_unlock(&listing->lock);
    *facts = before;
}

void s3_facts_free(struct s3_facts *facts)
{
    free(facts->names);
    *facts = (struct s3_facts){.names = NULL};
}

static bool is_listed(struct s3_listing *listing, const char *key, bool if_unknown)
{
    const uint64_t name = name_of(key);
    const struct s3_facts *facts = &listing->facts;
    bool is;

    pthread_mutex_lock(&listing->lock);
    is = !facts->is_listed ? if_unknown
                           : facts->count > 0 && bsearch(&name, facts->names, facts->count,
                                                         sizeof(name), compare_names) != NULL;
    pthread_mutex_unlock(&listing->lock);
    return is;
}

bool s3_has_config(struct s3_store *store, const char *path)
{
    return s3_listing_find(store->listing, path, NULL) == S3_KNOWN ||
           is_listed(store->listing, path, false);
}

/* --- reading --- */

enum zt_status s3_read_fact(struct store *base, const struct file_identity *identity,
                            const char *kind, char **out_text, size_t *out_length,
                            struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    struct bucket_object fact;
    char key[S3_FACT_KEY_SIZE];
    enum zt_status status;

    s3_fact_key(identity, kind, key);
    if (!is_listed(store->listing, key, true))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no such fact");
    if (!bucket_may_ask(&store->bucket))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store is unreachable");
    status = bucket_get(&store->bucket, key, FACT_BYTES_MOST, BUCKET_USUAL_TIME, &fact, error);
    if (status != ZT_OK)
        return status;
    *out_text = fact.bytes;
    *out_length = fact.length;
    return ZT_OK;
}

enum zt_status s3_find_sha256(struct store *base, const char *path,
                              const struct file_identity *identity, uint8_t out_sha256[32],
                              struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    struct object_version version;
    struct file_identity found;
    enum zt_status status;

    if (!bucket_may_ask(&store->bucket))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store is unreachable");
    status = bucket_head(&store->bucket, path, BUCKET_USUAL_TIME, &version, error);
    if (status != ZT_OK)
        return status;
    found = bucket_identity(version.etag, version.size_bytes, version.modified_s);
    return store_identity_equal(&found, identity) &&
                   zt_hex_read(zt_text_from(version.sha256), out_sha256, 32)
               ? ZT_OK
               : zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no SHA-256 is stored");
}
