/* Changes are looked up by the paths of a model's shards, so that a batch of a thousand changes
 * does not cost a thousand comparisons for each shard. Only a missing shard, which may have come
 * under any name, is compared with every change in its model's folder. */
#include "catalog/shard_changes.h"

#include <assert.h>
#include <string.h>

#include "zt/join.h"

/* The index of the first change whose path does not sort before the given one. */
static size_t bound(const struct catalog_change *changes, size_t count, const char *path,
                    size_t length)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strncmp(changes[middle].path, path, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool concerns(const struct generation *generation, const struct catalog_change *change)
{
    const struct generation *now = change->generation;

    return now != generation && shard_files_concern(&generation->shards, change->path,
                                                    now != NULL ? &now->identity : NULL);
}

static bool path_concerns(const struct generation *generation, const struct catalog_change *changes,
                          size_t count, const char *path)
{
    /* With its NUL, so that all of it is compared. */
    const size_t at = bound(changes, count, path, strlen(path) + 1);

    return at < count && strcmp(changes[at].path, path) == 0 && concerns(generation, &changes[at]);
}

static bool folder_concerns(const struct generation *generation,
                            const struct catalog_change *changes, size_t count)
{
    const char *slash = strrchr(generation->path, '/');
    const size_t length = slash != NULL ? (size_t)(slash - generation->path) + 1 : 0;

    for (size_t at = bound(changes, count, generation->path, length);
         at < count && strncmp(changes[at].path, generation->path, length) == 0; at++)
        if (concerns(generation, &changes[at]))
            return true;
    return false;
}

/* A split GGUF's own file, which is its first part. */
static bool own_part_concerns(const struct generation *generation,
                              const struct catalog_change *changes, size_t count)
{
    size_t at;

    if (!generation_is_split(generation))
        return false;
    at = bound(changes, count, generation->own_path, strlen(generation->own_path) + 1);
    if (at == count || strcmp(changes[at].path, generation->own_path) != 0)
        return false;
    return changes[at].generation == NULL ||
           !store_identity_equal(&changes[at].generation->identity, &generation->identity);
}

static bool is_numbered(const char *path, size_t *out_stem, uint32_t *out_number,
                        uint32_t *out_count)
{
    const char *dot = strrchr(path, '.');

    return dot != NULL && zt_part_name_split((struct zt_text){path, (size_t)(dot - path)}, out_stem,
                                             out_number, out_count);
}

static bool is_part(const struct generation *generation, const char *path)
{
    for (uint32_t i = 0; i < generation->shards.count; i++)
        if (strcmp(generation->shards.items[i].sibling, path) == 0)
            return true;
    return false;
}

/* A file that is numbered as the parts are and that the index does not name. */
static bool extra_part_concerns(const struct generation *generation,
                                const struct catalog_change *changes, size_t count)
{
    const char *sibling = generation->shards.count > 0 ? generation->shards.items[0].sibling : NULL;
    size_t stem, length;
    uint32_t parts, number;

    if (!generation->is_joined || generation_is_split(generation) || sibling == NULL ||
        !is_numbered(sibling, &stem, &number, &parts))
        return false;
    for (size_t at = bound(changes, count, sibling, stem);
         at < count && strncmp(changes[at].path, sibling, stem) == 0; at++) {
        uint32_t others;

        if (is_numbered(changes[at].path, &length, &number, &others) && length == stem &&
            others == parts && !is_part(generation, changes[at].path))
            return true;
    }
    return false;
}

bool shard_changes_concern(const struct generation *generation,
                           const struct catalog_change *changes, size_t count)
{
    bool misses = false;

    assert(count > 0);
    if (own_part_concerns(generation, changes, count) ||
        extra_part_concerns(generation, changes, count))
        return true;
    for (uint32_t i = 0; i < generation->shards.count; i++) {
        const struct shard_file *file = &generation->shards.items[i];

        misses = misses || file->path == NULL;
        if (path_concerns(generation, changes, count, file->sibling) ||
            (file->path != NULL && strcmp(file->path, file->sibling) != 0 &&
             path_concerns(generation, changes, count, file->path)))
            return true;
    }
    return misses && folder_concerns(generation, changes, count);
}
