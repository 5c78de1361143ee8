/* Keeps track of the files of models in several files: all parts of joined models, sorted by path
 * (an index may list any file in its folder, so a part's name does not identify its model), and
 * which models must be opened again after changes.
 *
 * Changes are looked up by the paths of a model's shards, so that a batch of a thousand changes
 * does not cost a thousand comparisons per shard. Only a missing shard, which may have appeared
 * under any name, is compared with all changes in its model's folder. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_index.h"
#include "zt/join.h"

/* A file that a joined model needs, whether or not it exists. The model owns the path. */
struct catalog_part {
    const char *path;
    struct generation *joined;
};

static int compare_parts(const void *a, const void *b)
{
    const struct catalog_part *one = a;
    const struct catalog_part *other = b;
    const int order = strcmp(one->path, other->path);

    return order != 0 ? order : strcmp(one->joined->path, other->joined->path);
}

/* Returns the index of the first change whose path does not sort before the first length bytes of
 * path. */
static size_t change_bound(const struct catalog_change *changes, size_t count, const char *path,
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
    assert(low == high);
    return low;
}

/* Returns the change of a path, or NULL. */
static const struct catalog_change *find_change(const struct catalog_change *changes, size_t count,
                                                const char *path)
{
    /* Including the NUL, so that the whole path is compared. */
    const size_t at = change_bound(changes, count, path, strlen(path) + 1);

    return at < count && strcmp(changes[at].path, path) == 0 ? &changes[at] : NULL;
}

/* --- parts --- */

static size_t count_of(const struct generation *generation)
{
    if (generation == NULL || !generation->is_joined)
        return 0;
    return generation->shards.count + generation_is_split(generation);
}

static size_t add_parts(struct generation *joined, struct catalog_part *out)
{
    size_t used = 0;

    if (generation_is_split(joined))
        out[used++] = (struct catalog_part){joined->own_path, joined};
    for (uint32_t i = 0; i < joined->shards.count; i++)
        out[used++] = (struct catalog_part){joined->shards.items[i].sibling, joined};
    assert(used == count_of(joined));
    return used;
}

/* Merges the existing parts, without those that go, with those that come. Returns the new
 * number. */
static size_t merge(const struct catalog_index *index, const struct catalog_change *changes,
                    size_t count, const struct catalog_part *added, size_t added_count,
                    struct catalog_part *out)
{
    size_t used = 0;
    size_t next = 0;

    for (size_t i = 0; i < index->part_count; i++) {
        const struct catalog_part *part = &index->parts[i];

        if (find_change(changes, count, part->joined->path) != NULL)
            continue;
        while (next < added_count && compare_parts(&added[next], part) < 0)
            out[used++] = added[next++];
        out[used++] = *part;
    }
    while (next < added_count)
        out[used++] = added[next++];
    assert(used <= index->part_count + added_count);
    return used;
}

bool catalog_parts_merge(const struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct catalog_index *next)
{
    struct catalog_part *added = NULL;
    size_t added_count = 0;
    size_t at = 0;

    assert(next->parts == NULL && next->part_count == 0);
    for (size_t i = 0; i < count; i++)
        added_count += count_of(changes[i].generation);
    next->parts = malloc((index->part_count + added_count + 1) * sizeof(*next->parts));
    if (added_count > 0)
        added = malloc(added_count * sizeof(*added));
    if (next->parts == NULL || (added_count > 0 && added == NULL)) {
        free(added);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (count_of(changes[i].generation) > 0)
            at += add_parts(changes[i].generation, added + at);
    assert(at == added_count);
    if (added_count > 1)
        qsort(added, added_count, sizeof(*added), compare_parts);
    next->part_count = merge(index, changes, count, added, added_count, next->parts);
    free(added);
    return true;
}

struct generation *catalog_index_model_of(const struct catalog_index *index, const char *path,
                                          struct name_filter filter)
{
    size_t low = 0;

    for (size_t high = index->part_count; low < high;) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(index->parts[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < index->part_count && strcmp(index->parts[low].path, path) == 0; low++) {
        struct generation *joined = index->parts[low].joined;

        if (name_filter_passes(filter, generation_name(joined)) &&
            catalog_index_find_name(index, generation_name(joined)) == joined)
            return joined;
    }
    return NULL;
}

/* --- changes of shards --- */

static bool concerns(const struct generation *generation, const struct catalog_change *change)
{
    const struct generation *now = change->generation;

    assert(generation->shards.count > 0);
    return now != generation && shard_files_concern(&generation->shards, change->path,
                                                    now != NULL ? &now->identity : NULL);
}

static bool path_concerns(const struct generation *generation, const struct catalog_change *changes,
                          size_t count, const char *path)
{
    const struct catalog_change *change = find_change(changes, count, path);

    return change != NULL && concerns(generation, change);
}

static bool folder_concerns(const struct generation *generation,
                            const struct catalog_change *changes, size_t count)
{
    const char *slash = strrchr(generation->path, '/');
    const size_t length = slash != NULL ? (size_t)(slash - generation->path) + 1 : 0;

    for (size_t at = change_bound(changes, count, generation->path, length);
         at < count && strncmp(changes[at].path, generation->path, length) == 0; at++)
        if (concerns(generation, &changes[at]))
            return true;
    return false;
}

/* Returns true if the first part of a split GGUF, which is its own file, has changed. */
static bool own_part_concerns(const struct generation *generation,
                              const struct catalog_change *changes, size_t count)
{
    const struct catalog_change *change;

    if (!generation_is_split(generation))
        return false;
    assert(generation->is_joined && generation->own_path != NULL);
    change = find_change(changes, count, generation->own_path);
    return change != NULL &&
           (change->generation == NULL ||
            !store_identity_equal(&change->generation->identity, &generation->identity));
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

/* Returns true if a file has appeared or gone that is numbered like the parts but that the index
 * does not list. */
static bool extra_part_concerns(const struct generation *generation,
                                const struct catalog_change *changes, size_t count)
{
    const char *sibling = generation->shards.count > 0 ? generation->shards.items[0].sibling : NULL;
    size_t stem, length;
    uint32_t parts, number;

    if (!generation->is_joined || generation_is_split(generation) || sibling == NULL ||
        !is_numbered(sibling, &stem, &number, &parts))
        return false;
    for (size_t at = change_bound(changes, count, sibling, stem);
         at < count && strncmp(changes[at].path, sibling, stem) == 0; at++) {
        uint32_t others;

        if (is_numbered(changes[at].path, &length, &number, &others) && length == stem &&
            others == parts && !is_part(generation, changes[at].path))
            return true;
    }
    return false;
}

bool catalog_changes_concern(const struct generation *generation,
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
