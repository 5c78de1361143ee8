/* Facts that one replica has found out about a version, so that the others need not. Removes them
 * when the version is gone. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/s3_write/s3_write.h"

enum zt_status s3_write_fact(struct store *base, const struct file_identity *identity,
                             const char *kind, const char *text, size_t length,
                             struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_FACT_KEY_SIZE];
    /* If two replicas write at the same time, either result is fine. */
    const struct bucket_put put = {
        .key = key, .condition = BUCKET_ALWAYS, .bytes = text, .length = length};

    if (!store->config->writable)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "this server does not write");
    if (!bucket_may_ask(&store->bucket))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store is unreachable");
    s3_fact_key(identity, kind, key);
    return bucket_put(&store->bucket, &put, NULL, error);
}

/* --- sweeping --- */

/* Younger facts may be about a version that the list did not contain yet. Clocks cannot differ by
 * this much: the service would refuse the signature. */
#define YOUNG_S 3600
/* Maximum per sweep; further facts wait for the next one. */
#define SWEEP_MOST 1000

struct id {
    char text[S3_FACT_ID_LENGTH];
};

struct facts_sweep {
    struct id *versions; /* of all objects that may be models */
    size_t count;
    size_t capacity;
    char (*facts)[S3_FACT_KEY_SIZE]; /* old ones */
    size_t fact_count;
    int64_t old_s; /* facts written before this are old */
    bool is_incomplete;
};

static bool note_version(struct facts_sweep *sweep, const struct listed_object *object)
{
    const struct file_identity identity =
        bucket_identity(object->etag, object->size_bytes, object->modified_s);
    char key[S3_FACT_KEY_SIZE];

    assert(sweep->count <= sweep->capacity);
    if (sweep->count == sweep->capacity) {
        const size_t capacity = sweep->capacity == 0 ? 64 : 2 * sweep->capacity;
        struct id *versions = realloc(sweep->versions, capacity * sizeof(*versions));

        if (versions == NULL)
            return false;
        sweep->versions = versions;
        sweep->capacity = capacity;
    }
    s3_fact_key(&identity, "", key);
    memcpy(sweep->versions[sweep->count++].text, key + strlen(S3_FACTS_PREFIX), S3_FACT_ID_LENGTH);
    return true;
}

static bool is_fact(const char *key)
{
    const size_t before = strlen(S3_FACTS_PREFIX);

    return strncmp(key, S3_FACTS_PREFIX, before) == 0 && strlen(key) < S3_FACT_KEY_SIZE &&
           strspn(key + before, ZT_HEX_LOWER) == S3_FACT_ID_LENGTH &&
           key[before + S3_FACT_ID_LENGTH] == '.';
}

static bool take_listed(void *context, const struct listed_object *object)
{
    struct facts_sweep *sweep = context;
    size_t name_length;
    unsigned rank;

    assert(sweep->fact_count <= SWEEP_MOST && !sweep->is_incomplete);
    if (model_path_split(object->key, &name_length, &rank))
        sweep->is_incomplete = !note_version(sweep, object);
    else if (is_fact(object->key) && object->modified_s > 0 && object->modified_s < sweep->old_s &&
             sweep->fact_count < SWEEP_MOST)
        strcpy(sweep->facts[sweep->fact_count++], object->key);
    return !sweep->is_incomplete;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct id));
}

static void remove_orphans(struct s3_store *store, const struct facts_sweep *sweep)
{
    assert(!sweep->is_incomplete);
    for (size_t i = 0; i < sweep->fact_count; i++) {
        const char *key = sweep->facts[i];

        if (sweep->count == 0 ||
            bsearch(key + strlen(S3_FACTS_PREFIX), sweep->versions, sweep->count,
                    sizeof(sweep->versions[0]), compare_ids) == NULL)
            (void)bucket_delete(&store->bucket, key, BUCKET_USUAL_TIME, NULL);
    }
}

void s3_facts_sweep(struct s3_store *store)
{
    struct facts_sweep sweep = {.old_s = clock_wall_ns() / CLOCK_NS_PER_S - YOUNG_S,
                                .facts = calloc(SWEEP_MOST, sizeof(sweep.facts[0]))};

    /* The same list contains versions and facts, so a version that is missing from it was gone when
     * the list was made. */
    if (sweep.facts != NULL &&
        bucket_list(&store->bucket, "", BUCKET_USUAL_TIME, take_listed, &sweep, NULL) == ZT_OK &&
        !sweep.is_incomplete) {
        if (sweep.count > 1)
            qsort(sweep.versions, sweep.count, sizeof(sweep.versions[0]), compare_ids);
        remove_orphans(store, &sweep);
    }
    free(sweep.versions);
    free(sweep.facts);
}
