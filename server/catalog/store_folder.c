#include "catalog/store_folder.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_index.h"
#include "digests/file_hashes.h"
#include "parts/split_path.h"

/* A shorter digest (CRC-32C) could be guessed: a client that may write a model could then read
 * files in its folder that it is not allowed to see. */
#define DIGEST_BYTES_MIN 8
/* The maximum number of remembered digests; a new one then replaces the oldest. */
#define KNOWN_DIGESTS_MAX 1024

struct known_digest {
    struct file_identity identity;
    struct zt_digest digest;
};

static struct store_folder *cast(struct part_folder *folder)
{
    return (struct store_folder *)folder;
}

struct zt_text store_path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');

    return (struct zt_text){path, slash != NULL ? (size_t)(slash - path) + 1 : 0};
}

/* --- files by path --- */

static enum zt_status open_file(struct part_folder *folder, const char *path,
                                struct zt_source **out_source, struct file_identity *out_identity,
                                struct zt_error *error)
{
    struct store *store = cast(folder)->store;

    return store->ops->open(store, path, out_source, out_identity, error);
}

static bool ignore_file(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    return true;
}

static void refresh(struct part_folder *folder, const char *path)
{
    struct store *store = cast(folder)->store;
    struct zt_error ignored;
    size_t length;
    unsigned rank;

    if (store_may_wait(store) && model_path_split(path, &length, &rank))
        (void)store->search->look_up(store, (struct zt_text){path, length}, ignore_file, NULL,
                                     &ignored);
}

/* A part must be a file that the catalog follows, and must not be an index. */
static bool may_be_part(const char *path)
{
    size_t length;
    unsigned rank;

    return model_path_split(path, &length, &rank) && !model_rank_is_index(rank);
}

/* Compares the folders after following links. */
static bool is_linked_below(struct store *store, const char *model_path, const char *path)
{
    const char *base = strrchr(path, '/');
    const size_t model_folder = store_path_folder(model_path).length;
    struct store_links model;
    struct store_links file;
    char folder[MODEL_PATH_SIZE];

    assert(base != NULL);
    if ((size_t)(base - path) >= sizeof(folder))
        return false;
    snprintf(folder, sizeof(folder), "%.*s", (int)(base - path), path);
    store->ops->find_links(store, folder, &file);
    if (model_folder == 0 || !file.is_known)
        return file.is_known;
    snprintf(folder, sizeof(folder), "%.*s", (int)model_folder - 1, path);
    store->ops->find_links(store, folder, &model);
    return model.is_known && strncmp(file.real, model.real, strlen(model.real)) == 0 &&
           file.real[strlen(model.real)] == '/';
}

static bool is_below(struct part_folder *folder, const char *model_path, const char *path,
                     const struct zt_shard *shard, struct zt_error *error)
{
    struct store *store = cast(folder)->store;

    if (store->ops->find_links == NULL || is_linked_below(store, model_path, path))
        return true;
    zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "shard %.*s is missing",
            (int)shard->name_length, shard->name);
    return false;
}

/* --- shards by content --- */

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
    assert(search->known_count <= KNOWN_DIGESTS_MAX && search->next_known < KNOWN_DIGESTS_MAX);
    if (search->known == NULL)
        search->known = calloc(KNOWN_DIGESTS_MAX, sizeof(*search->known));
    if (search->known == NULL)
        return;
    search->known[search->next_known] = (struct known_digest){*identity, *digest};
    search->next_known = (search->next_known + 1) % KNOWN_DIGESTS_MAX;
    if (search->known_count < KNOWN_DIGESTS_MAX)
        search->known_count++;
}

static enum zt_status digest_file(struct part_folder *folder, struct zt_source *source,
                                  const struct file_identity *identity,
                                  enum zt_digest_algorithm algorithm, struct zt_digest *out_digest,
                                  struct zt_error *error)
{
    struct store *store = cast(folder)->store;
    struct shard_search *search = cast(folder)->search;
    const struct known_digest *known;
    struct file_identity now;
    enum zt_status status;

    assert(search != NULL);
    known = recall(search, identity, algorithm);
    if (known != NULL) {
        *out_digest = known->digest;
        return ZT_OK;
    }
    status = zt_source_digest(source, algorithm, search->progress, out_digest, error);
    if (status != ZT_OK)
        return status;
    /* If the file was written to in between, the digest matches neither version. */
    if (!store->ops->identity_of(store, source, &now) || !store_identity_equal(&now, identity))
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "the file changed while it was read");
    remember(search, identity, out_digest);
    return ZT_OK;
}

/* Uses what the catalog found when it opened the file. A file whose own shards are missing is still
 * a container. */
static bool is_zt2(const struct generation *generation)
{
    if (generation->model != NULL)
        return generation->model->format == ZT_FORMAT_ZT2;
    return generation->error->status == ZT_DATA_SHARD ||
           (generation->shards.count > 0 && !generation->is_joined);
}

/* Returns true if a candidate is worth opening. Remote files are not hashed, since each would have
 * to be fetched: their digest must be known. */
static bool may_have_digest(struct shard_search *search, const struct generation *file,
                            const struct zt_digest *wanted)
{
    const struct known_digest *known;
    uint8_t sha256[SHA256_BYTES];

    if (store_has_locally(search->store, zt_text_from(file->path)))
        return true;
    known = recall(search, &file->identity, wanted->algorithm);
    if (known == NULL && wanted->algorithm == ZT_DIGEST_SHA256 &&
        file_hashes_find(search->hashes, file->path, &file->identity, sha256) &&
        memcmp(sha256, wanted->bytes, sizeof(sha256)) == 0) {
        remember(search, &file->identity, wanted);
        return true;
    }
    return known != NULL && zt_digest_equal(&known->digest, wanted);
}

static void visit_candidates(struct part_folder *folder, const char *model_path,
                             const struct zt_shard *shard, const struct zt_digest *wanted,
                             part_visitor *visit, void *context)
{
    struct shard_search *search = cast(folder)->search;
    const struct zt_text beside = store_path_folder(model_path);

    if (search == NULL)
        return;
    for (size_t i = catalog_index_path_bound(search->index, beside); i < search->index->count;
         i++) {
        const struct generation *file = search->index->by_path[i];

        if (strncmp(file->path, beside.bytes, beside.length) != 0)
            return;
        if (file->identity.size_bytes == shard->size_bytes &&
            zt_text_equal(store_path_folder(file->path), beside) && is_zt2(file) &&
            strcmp(file->path, model_path) != 0 && may_have_digest(search, file, wanted) &&
            visit(context, file->path))
            return;
    }
}

struct store_folder store_folder_of(struct store *store, struct shard_search *search)
{
    static const struct part_folder_ops ops = {
        .open = open_file,
        .refresh = refresh,
        .may_be_part = may_be_part,
        .is_below = is_below,
        .visit_candidates = visit_candidates,
        .digest = digest_file,
    };

    assert(search == NULL || search->store == store);
    return (struct store_folder){
        {.ops = &ops, .searched_digest_bytes_min = DIGEST_BYTES_MIN}, store, search};
}

void shard_search_clear(struct shard_search *search)
{
    free(search->known);
    search->known = NULL;
    search->known_count = 0;
    search->next_known = 0;
}
