/* Candidates are files of exactly the stated size; few enough of them are hashed that a folder of
 * equally large files does not make this endless. */
#include "catalog/shard_search.h"

#include <stdlib.h>
#include <string.h>

#include "zt/verify.h"

#define CANDIDATES_MAX 64

/* A model's folder, as the beginning of the paths in it: "" for the root, else with its '/'. */
static struct zt_text folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return (struct zt_text){path, slash != NULL ? (size_t)(slash - path) + 1 : 0};
}

static bool lies_in(const char *path, struct zt_text folder)
{
    struct zt_text its = folder_of(path);

    return its.length == folder.length && memcmp(path, folder.bytes, folder.length) == 0;
}

/* What is known of a file from the time it was brought into the catalog. One whose own shards are
 * missing is a container all the same. */
static bool is_zt2(const struct generation *generation)
{
    if (generation->model != NULL)
        return generation->model->format == ZT_FORMAT_ZT2;
    return generation->error.status == ZT_DATA_SHARD || generation->shards.count > 0;
}

static const struct known_digest *recall(const struct shard_search *search,
                                         const struct file_identity *identity,
                                         enum zt_digest_algorithm algorithm)
{
    for (size_t i = 0; i < search->known_count; i++) {
        const struct known_digest *known = &search->known[i];

        if (known->digest.algorithm == algorithm &&
            store_identity_equal(&known->identity, identity))
            return known;
    }
    return NULL;
}

static void remember(struct shard_search *search, const struct file_identity *identity,
                     const struct zt_digest *digest)
{
    if (search->known == NULL)
        search->known = calloc(KNOWN_DIGESTS_MAX, sizeof(*search->known));
    if (search->known == NULL)
        return;
    search->known[search->next_known] = (struct known_digest){*identity, *digest};
    search->next_known = (search->next_known + 1) % KNOWN_DIGESTS_MAX;
    if (search->known_count < KNOWN_DIGESTS_MAX)
        search->known_count++;
}

static bool has_digest(struct shard_search *search, struct zt_source *source,
                       const struct file_identity *identity, const struct zt_digest *wanted)
{
    const struct known_digest *known = recall(search, identity, wanted->algorithm);
    struct file_identity now;
    struct zt_digest actual;

    if (known != NULL)
        return zt_digest_equal(&known->digest, wanted);
    if (zt_source_digest(source, wanted->algorithm, search->progress, &actual, NULL) != ZT_OK)
        return false;
    /* Written to meanwhile: that was the digest of nothing that lasts. */
    if (!store_identity_of(source, &now) || !store_identity_equal(&now, identity))
        return false;
    remember(search, identity, &actual);
    return zt_digest_equal(&actual, wanted);
}

/* Opens a candidate; NULL when it is not the shard. */
static struct zt_source *try_file(struct shard_search *search, const char *path,
                                  const struct zt_shard *shard, const struct zt_digest *wanted,
                                  struct file_identity *out_identity)
{
    struct zt_source *source = NULL;

    if (search->store->ops->open(search->store, path, &source, out_identity, NULL) != ZT_OK)
        return NULL;
    if (zt_shard_check(shard, source, NULL) == ZT_OK &&
        has_digest(search, source, out_identity, wanted))
        return source;
    zt_source_close(source);
    return NULL;
}

bool shard_search_find(struct shard_search *search, const char *model_path,
                       const struct zt_shard *shard, struct zt_source **out_source,
                       struct file_identity *out_identity, char **out_path)
{
    const struct zt_text folder = folder_of(model_path);
    struct zt_digest wanted;
    unsigned tried = 0;

    if (zt_digest_parse((struct zt_text){shard->digest, shard->digest_length}, &wanted, NULL) !=
        ZT_OK)
        return false;
    for (size_t i = catalog_index_path_bound(search->index, folder); i < search->index->count;
         i++) {
        const struct generation *file = search->index->by_path[i];
        struct file_identity identity;
        struct zt_source *source;

        if (strncmp(file->path, folder.bytes, folder.length) != 0 || tried == CANDIDATES_MAX)
            break;
        if (file->identity.size_bytes != shard->size_bytes || !lies_in(file->path, folder) ||
            !is_zt2(file) || strcmp(file->path, model_path) == 0)
            continue;
        tried++;
        source = try_file(search, file->path, shard, &wanted, &identity);
        if (source == NULL)
            continue;
        *out_path = strdup(file->path);
        if (*out_path == NULL) {
            zt_source_close(source);
            return false;
        }
        *out_source = source;
        *out_identity = identity;
        return true;
    }
    return false;
}

void shard_search_clear(struct shard_search *search)
{
    free(search->known);
    search->known = NULL;
    search->known_count = search->next_known = 0;
}
