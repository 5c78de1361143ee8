/* What operators see and change: the mirrored repositories, and the removal of one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "store/mirror/mirror.h"
#include "store/mirror/mirror_store.h"

/* --- the list --- */

static void describe(struct mirror *mirror, const struct mirror_current *current,
                     struct mirror_repository_report *out_report)
{
    const struct mirror_version *version = current->version;

    assert(version != NULL && version->commit[0] != '\0');
    *out_report = (struct mirror_repository_report){.modified_ns = version->modified_ns,
                                                    .checked_s = current->checked_s,
                                                    .is_gone = current->is_gone_upstream,
                                                    .file_count = version->count};
    memcpy(out_report->name, current->name, sizeof(out_report->name));
    memcpy(out_report->commit, version->commit, sizeof(out_report->commit));
    pthread_mutex_lock(&mirror->index.lock);
    for (size_t i = 0; i < version->count; i++) {
        const struct mirror_entry *entry = &version->entries[i];

        out_report->size_bytes += entry->size_bytes;
        out_report->verified_count += entry->is_verified;
        out_report->verified_bytes += entry->is_verified ? entry->size_bytes : 0;
    }
    pthread_mutex_unlock(&mirror->index.lock);
}

bool mirror_repositories(struct store *store, unsigned index,
                         struct mirror_repository_report **out_list, size_t *out_count)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_repository_report *list = NULL;
    struct mirror_current *all;
    size_t all_count;
    size_t count = 0;

    assert(mirror_is(store) && index < mirror->upstream_count);
    if (mirror_index_list(&mirror->index, &all, &all_count))
        list = malloc((all_count + 1) * sizeof(*list));
    for (size_t i = 0; list != NULL && i < all_count; i++)
        if (all[i].upstream == index)
            describe(mirror, &all[i], &list[count++]);
    mirror_current_free(all, all_count);
    *out_list = list;
    *out_count = count;
    return list != NULL;
}

/* --- removal --- */

/* A file of a removed repository. */
struct removed {
    const struct mirror_entry *entry;
    const struct mirror_version *version;
    bool is_shared; /* another repository has the same bytes */
};

static int compare(const void *a, const void *b)
{
    const struct mirror_entry *first = ((const struct removed *)a)->entry;
    const struct mirror_entry *second = ((const struct removed *)b)->entry;

    return memcmp(first->digest, second->digest, sizeof(first->digest));
}

/* With the lock of the index. */
static void note_shared(const struct mirror_version *version, struct removed *list, size_t count)
{
    assert(count == 0 || list != NULL);
    for (size_t i = 0; count > 0 && i < version->count; i++) {
        const struct removed like = {.entry = &version->entries[i]};
        struct removed *found = bsearch(&like, list, count, sizeof(*list), compare);

        if (found == NULL || like.entry->digest_kind == UPSTREAM_NO_DIGEST)
            continue;
        while (found > list && compare(found - 1, &like) == 0)
            found--;
        for (; found < list + count && compare(found, &like) == 0; found++)
            found->is_shared =
                found->is_shared || mirror_entry_has_bytes_of(found->entry, like.entry);
    }
}

static void note_all_shared(struct mirror_index *index, unsigned upstream, struct removed *list,
                            size_t count)
{
    pthread_mutex_lock(&index->lock);
    for (const struct recency_link *link = index->recency.newest; link != NULL;
         link = link->older) {
        const struct mirror_repository *repository = (const struct mirror_repository *)link;

        for (unsigned i = 0; repository->upstream == upstream && i < repository->version_count; i++)
            note_shared(repository->versions[i], list, count);
    }
    pthread_mutex_unlock(&index->lock);
}

/* Returns the files of all versions, or NULL if out of memory. */
static struct removed *list_files(struct mirror_version *const *versions, unsigned version_count,
                                  size_t *out_count)
{
    struct removed *list;
    size_t count = 0;

    assert(version_count <= MIRROR_VERSIONS_MAX);
    for (unsigned i = 0; i < version_count; i++)
        count += versions[i]->count;
    list = calloc(count + 1, sizeof(*list));
    *out_count = 0;
    for (unsigned i = 0; list != NULL && i < version_count; i++)
        for (size_t n = 0; n < versions[i]->count; n++)
            list[(*out_count)++] =
                (struct removed){.entry = &versions[i]->entries[n], .version = versions[i]};
    if (*out_count > 1)
        qsort(list, *out_count, sizeof(*list), compare);
    return list;
}

static void drop_files(struct mirror_upstream *upstream, const char *repository,
                       const struct removed *list, size_t count)
{
    assert(upstream->files != NULL && repository[0] != '\0');
    for (size_t i = 0; i < count; i++) {
        const struct mirror_place place = {
            .file = mirror_entry_place(repository, list[i].version, list[i].entry)};

        if (!list[i].is_shared)
            mirror_file_drop(upstream->files, &place);
    }
}

enum zt_status mirror_remove(struct store *store, unsigned index, const char *repository,
                             struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_version *versions[MIRROR_VERSIONS_MAX];
    struct removed *list;
    unsigned version_count;
    size_t count;

    assert(mirror_is(store) && index < mirror->upstream_count);
    if (mirror_known_upstream(mirror, zt_text_from(repository)) != index ||
        !mirror_index_remove(&mirror->index, repository, versions, &version_count))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "nothing of this repository is mirrored from this upstream");
    /* The catalog looks at the paths again, and does not find them. */
    for (unsigned i = 0; i < version_count; i++)
        mirror_note_changes(mirror, repository, versions[i]);
    list = list_files(versions, version_count, &count);
    note_all_shared(&mirror->index, index, list, list != NULL ? count : 0);
    drop_files(&mirror->upstreams[index], repository, list, list != NULL ? count : 0);
    for (unsigned i = 0; i < version_count; i++)
        mirror_version_release(versions[i]);
    log_write(LOG_LEVEL_INFO, "mirror: %s was removed", repository);
    if (list == NULL)
        return zt_fail_memory(error, "a list of files");
    free(list);
    return ZT_OK;
}
