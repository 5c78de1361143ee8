/* Finds a model's shards, by name or by content; opens, parks and compares their files.
 *
 * A search by content considers files of exactly the stated size, and hashes only a limited number
 * of them, so that a folder full of equally large files does not take forever. */
#include "catalog/shard_files.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_index.h"
#include "zt/verify.h"

#define CANDIDATES_MAX 64
/* A shorter digest (CRC-32C) could be guessed: whoever may write a model would get at the bytes of
 * other files in its folder, which it may not be allowed to see. */
#define DIGEST_BYTES_MIN 8
/* When this many digests are remembered, a new one replaces the oldest. */
#define KNOWN_DIGESTS_MAX 1024

struct known_digest {
    struct file_identity identity;
    struct zt_digest digest;
};

/* --- by content --- */

/* The folder of a model, as a prefix of the paths in it: "" for the root, else with its '/'. */
static struct zt_text folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return (struct zt_text){path, slash != NULL ? (size_t)(slash - path) + 1 : 0};
}

static bool is_in(const char *path, struct zt_text folder)
{
    return zt_text_equal(folder_of(path), folder);
}

/* Known from opening the file for the catalog. A file whose own shards are missing is still a
 * container. */
static bool is_zt2(const struct generation *generation)
{
    if (generation->model != NULL)
        return generation->model->format == ZT_FORMAT_ZT2;
    return generation->error->status == ZT_DATA_SHARD ||
           (generation->shards.count > 0 && !generation->is_joined);
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

/* Whether a step succeeded; remembers if the store could not tell. */
static bool is_done(struct shard_search *search, enum zt_status status)
{
    if (status == ZT_UNAVAILABLE || status == ZT_STALE)
        search->was_unavailable = true;
    return status == ZT_OK;
}

static bool has_digest(struct shard_search *search, struct zt_source *source,
                       const struct file_identity *identity, const struct zt_digest *wanted)
{
    const struct known_digest *known = recall(search, identity, wanted->algorithm);
    struct file_identity now;
    struct zt_digest actual;

    if (known != NULL)
        return zt_digest_equal(&known->digest, wanted);
    if (!is_done(search,
                 zt_source_digest(source, wanted->algorithm, search->progress, &actual, NULL)))
        return false;
    /* The digest of bytes that were written to meanwhile is not remembered. */
    if (!search->store->ops->identity_of(search->store, source, &now) ||
        !store_identity_equal(&now, identity))
        return false;
    remember(search, identity, &actual);
    return zt_digest_equal(&actual, wanted);
}

/* Whether a candidate is worth opening. Of files that are elsewhere only those whose digest is
 * known: to hash them all would bring them all. */
static bool may_have_digest(struct shard_search *search, const struct generation *file,
                            const struct zt_digest *wanted)
{
    const struct known_digest *known;

    if (!store_is_elsewhere(search->store))
        return true;
    known = recall(search, &file->identity, wanted->algorithm);
    if (known == NULL && wanted->algorithm == ZT_DIGEST_SHA256 &&
        atomic_load(&file->has_file_sha256) &&
        memcmp(file->file_sha256, wanted->bytes, sizeof(file->file_sha256)) == 0) {
        remember(search, &file->identity, wanted);
        return true;
    }
    return known != NULL && zt_digest_equal(&known->digest, wanted);
}

/* Opens a candidate; NULL if it is not the shard. */
static struct zt_source *try_file(struct shard_search *search, const char *path,
                                  const struct zt_shard *shard, const struct zt_digest *wanted,
                                  struct file_identity *out_identity)
{
    struct zt_source *source = NULL;

    if (!is_done(search,
                 search->store->ops->open(search->store, path, &source, out_identity, NULL)))
        return NULL;
    if (is_done(search, zt_shard_check(shard, source, NULL)) &&
        has_digest(search, source, out_identity, wanted))
        return source;
    zt_source_close(source);
    return NULL;
}

/* Opens the file that is the shard, and puts its path and identity into out_file. */
static bool find_by_content(const struct shard_owner *owner, const struct zt_shard *shard,
                            struct shard_file *out_file, struct zt_source **out_source)
{
    struct shard_search *search = owner->search;
    const struct zt_text folder = folder_of(owner->path);
    struct zt_digest wanted;
    unsigned tried = 0;

    if (zt_digest_parse((struct zt_text){shard->digest, shard->digest_length}, &wanted, NULL) !=
            ZT_OK ||
        wanted.length_bytes < DIGEST_BYTES_MIN)
        return false;
    for (size_t i = catalog_index_path_bound(search->index, folder);
         i < search->index->count && tried < CANDIDATES_MAX; i++) {
        const struct generation *file = search->index->by_path[i];
        struct file_identity identity;
        struct zt_source *source;

        if (strncmp(file->path, folder.bytes, folder.length) != 0)
            break;
        if (file->identity.size_bytes != shard->size_bytes || !is_in(file->path, folder) ||
            !is_zt2(file) || strcmp(file->path, owner->path) == 0 ||
            !may_have_digest(search, file, &wanted))
            continue;
        tried++;
        source = try_file(search, file->path, shard, &wanted, &identity);
        if (source == NULL)
            continue;
        out_file->path = strdup(file->path);
        if (out_file->path == NULL) {
            zt_source_close(source);
            return false;
        }
        out_file->identity = identity;
        *out_source = source;
        return true;
    }
    return false;
}

void shard_search_clear(struct shard_search *search)
{
    free(search->known);
    search->known = NULL;
    search->known_count = 0;
    search->next_known = 0;
}

/* --- a model's shards --- */

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the shards");
}

/* Closes the open files and forgets their paths. */
static void forget_places(struct shard_files *files)
{
    shard_files_park(files);
    for (uint32_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
        files->items[i].path = NULL;
    }
}

static enum zt_status prepare(struct shard_files *files, const char *model_path,
                              const struct zt_model *model, struct zt_error *error)
{
    if (model->shard_count > SHARDS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "%" PRIu32 " shards are more than the %d that are served",
                       model->shard_count, SHARDS_MAX);
    files->items = calloc(model->shard_count, sizeof(*files->items));
    if (files->items != NULL)
        files->sources = calloc(model->shard_count, sizeof(struct zt_source *));
    if (files->items == NULL || files->sources == NULL)
        return no_memory(error);
    files->count = model->shard_count;
    for (uint32_t i = 0; i < files->count; i++) {
        files->items[i].size_bytes = model->shards[i].size_bytes;
        files->items[i].is_data = model->shards[i].kind == ZT_SHARD_DATA;
        files->items[i].sibling = zt_shard_sibling(model_path, &model->shards[i]);
        if (files->items[i].sibling == NULL)
            return no_memory(error);
    }
    return ZT_OK;
}

static enum zt_status open_sibling(struct shard_file *file, struct store *store,
                                   const struct zt_shard *shard, struct zt_source **out_source,
                                   struct zt_error *error)
{
    struct zt_source *source = NULL;
    enum zt_status status = store->ops->open(store, file->sibling, &source, &file->identity, error);

    if (status == ZT_NOT_FOUND)
        return zt_fail(error, status, NULL, ZT_NO_OFFSET, "shard %.*s is missing",
                       (int)shard->name_length, shard->name);
    if (status == ZT_OK)
        status = zt_shard_check(shard, source, error);
    if (status != ZT_OK) {
        zt_source_close(source);
        return status;
    }
    file->path = strdup(file->sibling);
    if (file->path == NULL) {
        zt_source_close(source);
        return no_memory(error);
    }
    *out_source = source;
    return ZT_OK;
}

/* Opens one shard. The error is that of the sibling, even if other files were tried too. */
static enum zt_status open_shard(struct shard_files *files, uint32_t index,
                                 const struct shard_owner *owner, struct zt_error *error)
{
    const struct zt_shard *shard = &owner->model->shards[index];
    struct shard_file *file = &files->items[index];
    struct zt_source **source = &files->sources[index];
    enum zt_status status = open_sibling(file, owner->store, shard, source, error);

    assert(index < files->count);
    file->was_asked = true;
    /* Without a digest there is nothing to find a file by. */
    if ((status != ZT_NOT_FOUND && status != ZT_INVALID) || owner->search == NULL ||
        shard->digest == NULL)
        return status;
    owner->search->was_unavailable = false;
    if (find_by_content(owner, shard, file, source))
        return ZT_OK;
    if (owner->search->was_unavailable)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "a file that may be the shard cannot be read now");
    return status;
}

enum zt_status shard_files_open(struct shard_files *files, const struct shard_owner *owner,
                                struct zt_error *error)
{
    enum zt_status status = prepare(files, owner->path, owner->model, error);

    for (uint32_t i = 0; status == ZT_OK && i < files->count; i++)
        status = open_shard(files, i, owner, error);
    if (status != ZT_OK)
        forget_places(files);
    return status;
}

void shard_files_park(struct shard_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        zt_source_close(files->sources[i]);
        files->sources[i] = NULL;
    }
}

bool shard_files_unpark(struct shard_files *files, struct store *store, struct zt_error *error)
{
    for (uint32_t i = 0; i < files->count; i++) {
        const struct shard_file *file = &files->items[i];
        struct file_identity identity;

        if (file->path == NULL)
            continue;
        if (store->ops->open(store, file->path, &files->sources[i], &identity, error) != ZT_OK ||
            !store_identity_equal(&identity, &file->identity)) {
            shard_files_park(files);
            return false;
        }
    }
    return true;
}

bool shard_files_are_same(const struct shard_files *files, struct store *store,
                          identity_comparison *equal)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct file_identity now;

        if (files->sources[i] != NULL && store->ops->identity_of(store, files->sources[i], &now) &&
            !equal(&now, &files->items[i].identity))
            return false;
    }
    return true;
}

static bool is_concerned(const struct shard_file *file, const char *path,
                         const struct file_identity *identity)
{
    if (file->path != NULL && strcmp(file->path, path) == 0)
        return identity == NULL || !store_identity_equal(identity, &file->identity);
    if (strcmp(file->sibling, path) == 0)
        return true;
    return file->path == NULL && identity != NULL && identity->size_bytes == file->size_bytes;
}

bool shard_files_concern(const struct shard_files *files, const char *path,
                         const struct file_identity *identity)
{
    for (uint32_t i = 0; i < files->count; i++)
        if (is_concerned(&files->items[i], path, identity))
            return true;
    return false;
}

static bool has_new_data(const struct shard_file *file, struct store *store)
{
    static const struct file_identity missing;
    struct file_identity now;
    struct zt_source *source = NULL;
    const enum zt_status status = store->ops->open(store, file->sibling, &source, &now, NULL);

    zt_source_close(source);
    if (status == ZT_OK)
        return !store_identity_equal(&now, &file->identity);
    return status == ZT_NOT_FOUND && !store_identity_equal(&missing, &file->identity);
}

bool shard_files_have_new_data(const struct shard_files *files, struct store *store)
{
    for (uint32_t i = 0; i < files->count; i++)
        if (files->items[i].is_data && files->items[i].was_asked &&
            has_new_data(&files->items[i], store))
            return true;
    return false;
}

void shard_files_free(struct shard_files *files)
{
    forget_places(files);
    for (uint32_t i = 0; i < files->count; i++)
        free(files->items[i].sibling);
    free(files->items);
    free(files->sources);
    *files = (struct shard_files){0, NULL, NULL};
}
