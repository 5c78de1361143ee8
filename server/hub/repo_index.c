/* A folder that contains a model is a repository. Subfolders of a folder without a model are
 * repositories too; a README alone does not make the owner's folder one. A model's file without a
 * config.json may have strayed into an owner's folder, so folders below it with models are
 * repositories too. Caches of the Hub's clients ("models--owner--name/snapshots/…") are also
 * found. */
#include "hub/repo_index.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "views/model_view.h"

#define REPOS_MAX       1000000
#define CONFIG          "config.json"
#define CACHE_PREFIX    "models--"
#define CACHE_SNAPSHOTS "snapshots/"

/* --- tags --- */

/* In the order of model_extension. */
static const char *const tags[] = {"ztensor", "safetensors", "gguf",    "mag",     "npz", "npy",
                                   "pytorch", "pytorch",     "pytorch", "pytorch", "onnx"};

#define TAG_COUNT (sizeof(tags) / sizeof(tags[0]))

const char *hub_tag_at(unsigned index)
{
    return index < TAG_COUNT ? tags[index] : NULL;
}

static unsigned bit_of(const char *tag)
{
    unsigned index = 0;

    while (strcmp(tags[index], tag) != 0)
        index++;
    return 1U << index;
}

unsigned hub_tags_of(const char *path, bool has_views)
{
    size_t name_length;
    unsigned index;
    unsigned bits;

    if (!model_path_split(path, &name_length, &index) || index >= TAG_COUNT)
        return 0;
    bits = 1U << index;
    if (has_views && strcmp(tags[index], "gguf") != 0 && model_view_is_of(path))
        bits |= bit_of("safetensors");
    return bits;
}

/* --- names --- */

/* Converts "models--owner--name/snapshots/…" to "owner/name". Returns false for any other path of a
 * cache. */
static bool name_of_snapshot(const char *path, char out_name[HUB_REPO_SIZE])
{
    const char *name = path + sizeof(CACHE_PREFIX) - 1;
    const char *end = strchr(name, '/');
    const char *between = end != NULL ? memmem(name, (size_t)(end - name), "--", 2) : NULL;

    if (end == NULL || strncmp(end + 1, CACHE_SNAPSHOTS, sizeof(CACHE_SNAPSHOTS) - 1) != 0)
        return false;
    if (between == NULL)
        return snprintf(out_name, HUB_REPO_SIZE, "%.*s", (int)(end - name), name) < HUB_REPO_SIZE;
    return snprintf(out_name, HUB_REPO_SIZE, "%.*s/%.*s", (int)(between - name), name,
                    (int)(end - between - 2), between + 2) < HUB_REPO_SIZE;
}

/* Returns true if a file of this name shows that its folder is a model's. */
static bool makes_model(const char *path, const char *name)
{
    size_t length;
    unsigned rank;

    return strcmp(name, CONFIG) == 0 || model_path_split(path, &length, &rank);
}

/* Finds the repository of a file: its folder, or the first two folders in its path. Returns false
 * if it is in no folder. */
static bool name_of(const char *path, struct repo_summary *out_summary)
{
    const char *first = strchr(path, '/');
    const char *second = first != NULL ? strchr(first + 1, '/') : NULL;
    const char *end = second != NULL ? second : first;

    if (first == NULL)
        return false;
    if (strncmp(path, CACHE_PREFIX, sizeof(CACHE_PREFIX) - 1) == 0) {
        out_summary->is_snapshot = true;
        return name_of_snapshot(path, out_summary->name);
    }
    out_summary->has_model = strchr(end + 1, '/') == NULL && makes_model(path, end + 1);
    out_summary->has_config = second == NULL && strcmp(first + 1, CONFIG) == 0;
    return snprintf(out_summary->name, sizeof(out_summary->name), "%.*s", (int)(end - path), path) <
           (int)sizeof(out_summary->name);
}

/* --- the walk --- */

struct walk {
    struct repo_index *index;
    struct name_filter sees;
    bool has_views;
    bool out_of_memory;
};

/* Returns true if the client may see the file. A snapshot's file is judged by its path in the
 * repository. */
static bool is_seen(const struct walk *walk, const char *repo, const char *path)
{
    char name[HUB_REPO_SIZE + MODEL_PATH_SIZE];
    const char *rest;

    if (strncmp(path, CACHE_PREFIX, sizeof(CACHE_PREFIX) - 1) != 0)
        return name_filter_passes(walk->sees, zt_text_from(path));
    assert(strstr(path, "/" CACHE_SNAPSHOTS) != NULL);
    rest = strstr(path, "/" CACHE_SNAPSHOTS) + sizeof("/" CACHE_SNAPSHOTS) - 1;
    snprintf(name, sizeof(name), "%s%s", repo, strchrnul(rest, '/'));
    return name_filter_passes(walk->sees, zt_text_from(name));
}

static void merge(struct repo_summary *into, const struct repo_summary *other)
{
    assert(strcmp(into->name, other->name) == 0);
    into->tags |= other->tags;
    into->has_model |= other->has_model;
    into->has_config |= other->has_config;
    into->is_snapshot |= other->is_snapshot;
    if (other->modified_ns > into->modified_ns)
        into->modified_ns = other->modified_ns;
}

static bool visit(void *context, const char *path, const struct file_identity *identity)
{
    struct walk *walk = context;
    struct repo_index *index = walk->index;
    struct repo_summary summary = {.tags = 0};

    if (identity == NULL || !name_of(path, &summary) ||
        !hub_repo_is_valid(zt_text_from(summary.name)) || !is_seen(walk, summary.name, path))
        return true;
    summary.modified_ns = identity->modified_ns;
    summary.tags = hub_tags_of(path, walk->has_views && !summary.is_snapshot);
    /* Files of one folder usually come one after another. */
    if (index->count > 0 && strcmp(index->repos[index->count - 1].name, summary.name) == 0) {
        merge(&index->repos[index->count - 1], &summary);
        return true;
    }
    walk->out_of_memory = zt_array_reserve(&index->repos, &index->capacity, index->count + 1,
                                           sizeof(summary), REPOS_MAX) != ZT_OK;
    if (!walk->out_of_memory)
        index->repos[index->count++] = summary;
    return !walk->out_of_memory;
}

/* --- order --- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct repo_summary *)a)->name, ((const struct repo_summary *)b)->name);
}

static void merge_equal(struct repo_index *index)
{
    size_t count = 0;

    for (size_t i = 0; i < index->count; i++)
        if (count > 0 && strcmp(index->repos[count - 1].name, index->repos[i].name) == 0)
            merge(&index->repos[count - 1], &index->repos[i]);
        else
            index->repos[count++] = index->repos[i];
    index->count = count;
}

/* Returns true if it is a folder of repositories. It may also contain other files. */
static bool is_owner(const struct repo_summary *repo)
{
    return strchr(repo->name, '/') == NULL && !repo->has_model && !repo->is_snapshot;
}

/* Returns true if it is a folder of another repository. */
static bool is_inside(const struct repo_index *index, const struct repo_summary *repo)
{
    const char *slash = strchr(repo->name, '/');
    struct repo_summary key = {.tags = 0};
    const struct repo_summary *above;

    if (slash == NULL)
        return false;
    memcpy(key.name, repo->name, (size_t)(slash - repo->name));
    above = bsearch(&key, index->repos, index->count, sizeof(key), compare);
    return above != NULL && above->has_model && (above->has_config || !repo->has_model);
}

static void drop_others(struct repo_index *index)
{
    struct repo_index kept = {.repos = malloc((index->count + 1) * sizeof(*kept.repos))};

    if (kept.repos == NULL)
        return;
    for (size_t i = 0; i < index->count; i++)
        if (!is_owner(&index->repos[i]) && !is_inside(index, &index->repos[i]))
            kept.repos[kept.count++] = index->repos[i];
    free(index->repos);
    *index = kept;
}

enum zt_status repo_index_make(struct server *server, struct name_filter sees,
                               struct repo_index *out_index, struct zt_error *error)
{
    struct walk walk = {.index = out_index, .sees = sees, .has_views = server->config->hub.views};
    struct store *store = server->store;
    enum zt_status status;

    *out_index = (struct repo_index){.repos = NULL};
    status = store->ops->walk(store, "", true, visit, &walk, error);
    if (walk.out_of_memory)
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for repositories");
    if (status != ZT_OK && status != ZT_NOT_FOUND)
        return status;
    if (out_index->count > 0)
        qsort(out_index->repos, out_index->count, sizeof(*out_index->repos), compare);
    merge_equal(out_index);
    drop_others(out_index);
    return ZT_OK;
}

void repo_index_free(struct repo_index *index)
{
    free(index->repos);
}
