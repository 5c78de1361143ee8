/* A file with the expected name and the stated size is the shard. Otherwise the content decides:
 * only files of exactly the stated size are read, and only a limited number, so that a folder full
 * of equally large files does not take forever. */
#include "parts/shard_finder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 64

struct search {
    struct part_folder *folder;
    const struct zt_shard *shard;
    struct zt_digest wanted;
    struct found_shard *found;
    unsigned tried;
    bool was_unavailable; /* a candidate could not be read at present */
};

/* Takes over the open source if there is memory for its path. */
static enum zt_status take_source(struct found_shard *found, const char *path,
                                  struct zt_source *source, struct zt_error *error)
{
    assert(found->path == NULL && found->source == NULL);
    found->path = strdup(path);
    if (found->path == NULL) {
        zt_source_close(source);
        return zt_fail_memory(error, "the shards");
    }
    found->source = source;
    return ZT_OK;
}

/* --- by name --- */

/* Returns true if this program can compute the stated digest. */
static bool has_known_digest(const struct zt_shard *shard)
{
    enum zt_digest_algorithm algorithm;
    struct zt_digest digest;

    if (shard->kind == ZT_SHARD_DATA)
        return zt_shard_digest(shard, &digest, NULL) == ZT_OK;
    return shard->digest != NULL &&
           zt_digest_algorithm((struct zt_text){shard->digest, shard->digest_length}, &algorithm);
}

static enum zt_status find_by_name(struct part_folder *folder, const char *model_path,
                                   const char *sibling, const struct zt_shard *shard,
                                   struct found_shard *found, struct zt_error *error)
{
    const bool has_folders = memchr(shard->name, '/', shard->name_length) != NULL;
    struct zt_source *source = NULL;
    enum zt_status status;

    /* External data may be in folders below the model's folder, but a link there may lead
     * anywhere. */
    if (shard->kind == ZT_SHARD_DATA && has_folders && folder->ops->is_below != NULL &&
        !folder->ops->is_below(folder, model_path, sibling, shard, error))
        return ZT_NOT_FOUND;
    status = folder->ops->open(folder, sibling, &source, &found->identity, error);
    if (status == ZT_NOT_FOUND)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "shard %.*s is missing",
                       (int)shard->name_length, shard->name);
    if (status == ZT_OK)
        status = zt_shard_check(shard, source, error);
    if (status == ZT_OK && folder->compares_digests && has_known_digest(shard))
        status = zt_shard_check_digest(shard, source, NULL, error);
    if (status != ZT_OK) {
        zt_source_close(source);
        return status;
    }
    return take_source(found, sibling, source, error);
}

/* --- by content --- */

/* Returns true if a step succeeded, and records if the file could not be read at present. */
static bool succeeded(struct search *search, enum zt_status status)
{
    if (status == ZT_UNAVAILABLE || status == ZT_STALE)
        search->was_unavailable = true;
    return status == ZT_OK;
}

static bool has_wanted_digest(struct search *search, struct zt_source *source,
                              const struct file_identity *identity)
{
    struct part_folder *folder = search->folder;
    const enum zt_digest_algorithm algorithm = search->wanted.algorithm;
    struct zt_digest actual;
    const enum zt_status status =
        folder->ops->digest != NULL
            ? folder->ops->digest(folder, source, identity, algorithm, &actual, NULL)
            : zt_source_digest(source, algorithm, NULL, &actual, NULL);

    return succeeded(search, status) && zt_digest_equal(&actual, &search->wanted);
}

static bool try_candidate(void *context, const char *path)
{
    struct search *search = context;
    struct part_folder *folder = search->folder;
    struct zt_source *source = NULL;
    struct file_identity identity = {0};

    assert(search->found->path == NULL && search->tried < CANDIDATES_MAX);
    search->tried++;
    if (succeeded(search, folder->ops->open(folder, path, &source, &identity, NULL))) {
        if (succeeded(search, zt_shard_check(search->shard, source, NULL)) &&
            has_wanted_digest(search, source, &identity)) {
            search->found->identity = identity;
            (void)take_source(search->found, path, source, NULL);
            return true;
        }
        zt_source_close(source);
    }
    return search->tried == CANDIDATES_MAX;
}

enum zt_status shard_find(struct part_folder *folder, const char *model_path, const char *sibling,
                          const struct zt_shard *shard, struct found_shard *out_found,
                          struct zt_error *error)
{
    struct search search = {.folder = folder, .shard = shard, .found = out_found};
    enum zt_status status;

    assert(shard->kind != ZT_SHARD_PART);
    *out_found = (struct found_shard){.path = NULL};
    status = find_by_name(folder, model_path, sibling, shard, out_found, error);
    /* A file with wrong bytes (ZT_CORRUPT) is an error and no reason to search further. */
    if ((status != ZT_NOT_FOUND && status != ZT_INVALID) || shard->kind != ZT_SHARD_CONTAINER ||
        folder->ops->visit_candidates == NULL || shard->digest == NULL)
        return status;
    if (zt_digest_parse((struct zt_text){shard->digest, shard->digest_length}, &search.wanted,
                        NULL) != ZT_OK ||
        search.wanted.length_bytes < folder->searched_digest_bytes_min)
        return status;
    folder->ops->visit_candidates(folder, model_path, shard, &search.wanted, try_candidate,
                                  &search);
    if (out_found->path != NULL)
        return ZT_OK;
    if (search.was_unavailable)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "a file that may be the shard cannot be read now");
    return status;
}
