/* Finds the files of commits: by folder, and by the name of a model. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/store_folders.h"
#include "store/versions/versions_state.h"
#include "zt/digest.h"
#include "zt/join.h"

/* How often a name is looked for. */
#define SOUGHT_AGAIN_MS 2000

/* Returns the first index whose path is equal or greater. */
static size_t lower_bound(const struct history_tree *tree, struct zt_text path)
{
    size_t low = 0;
    size_t high = tree->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (zt_text_compare(zt_text_from(tree->files[middle].path), path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low <= tree->count);
    return low;
}

/* --- folders --- */

static bool write_path(const struct versions_place *place, const struct history_file *file,
                       char out_path[MODEL_PATH_SIZE])
{
    assert(place->base.length > 0);
    return snprintf(out_path, MODEL_PATH_SIZE, "%.*s/%s", (int)place->base.length,
                    place->base.bytes, file->path) < MODEL_PATH_SIZE;
}

/* Returns false to stop. */
static bool visit_file(struct store_folders *folders, const struct versions_place *place,
                       const struct history_file *file, size_t below)
{
    const struct file_identity identity = versions_identity(file);
    char path[MODEL_PATH_SIZE];

    if (!write_path(place, file, path))
        return true;
    if (!store_folders_visit(folders, path, below))
        return false;
    return (!folders->is_deep && strchr(path + below, '/') != NULL) ||
           folders->visit(folders->context, path, &identity);
}

/* Returns false if the folder has no files. */
static bool visit_below(struct store_folders *folders, const struct versions_place *place)
{
    char beginning[MODEL_PATH_SIZE];
    const bool is_whole = place->rest.length == 0;
    struct zt_text prefix = {beginning, is_whole ? 0 : place->rest.length + 1};
    const size_t below = place->base.length + 1 + prefix.length;
    size_t first;

    assert(place->tree != NULL);
    if (prefix.length >= sizeof(beginning))
        return false;
    snprintf(beginning, sizeof(beginning), "%.*s/", (int)place->rest.length, place->rest.bytes);
    first = lower_bound(place->tree, prefix);
    for (size_t i = first; i < place->tree->count; i++) {
        const struct history_file *file = &place->tree->files[i];

        if (!zt_text_starts_with(zt_text_from(file->path), prefix))
            return i > first || is_whole;
        if (!visit_file(folders, place, file, below))
            return true;
    }
    return first < place->tree->count || is_whole;
}

enum zt_status versions_walk(struct store *store, const char *folder, bool is_deep,
                             store_visit visit, void *context, struct zt_error *error)
{
    struct versions *versions = versions_of(store);
    struct store_folders folders = {.visit = visit, .context = context, .is_deep = is_deep};
    struct versions_place place;
    struct zt_error failure;
    enum zt_status status = versions_place_find(versions, zt_text_from(folder), &place, &failure);

    if (status == ZT_NOT_FOUND)
        return store->inner->ops->walk(store->inner, folder, is_deep, visit, context, error);
    if (status != ZT_OK) {
        if (error != NULL)
            *error = failure;
        return status;
    }
    snprintf(folders.above, sizeof(folders.above), "%s", folder);
    if (!visit_below(&folders, &place))
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    versions_place_release(&place);
    return status;
}

/* --- models --- */

bool versions_may_look_up(struct store *store, struct zt_text name)
{
    struct versions *versions = versions_of(store);
    const uint64_t hash = zt_xxh3(name.bytes, name.length);
    const size_t at = hash % VERSIONS_SOUGHT;
    const int64_t now_ms = clock_ms();
    bool may;

    if (!versions_knows(versions, name))
        return false;
    pthread_mutex_lock(&versions->lock);
    may =
        versions->sought[at].hash != hash || now_ms - versions->sought[at].at_ms >= SOUGHT_AGAIN_MS;
    if (may) {
        versions->sought[at].hash = hash;
        versions->sought[at].at_ms = now_ms;
    }
    pthread_mutex_unlock(&versions->lock);
    return may;
}

/* Returns the folder of a path, with its slash. */
static struct zt_text folder_of(struct zt_text path)
{
    size_t length = path.length;

    while (length > 0 && path.bytes[length - 1] != '/')
        length--;
    return (struct zt_text){path.bytes, length};
}

/* Lets a model that was found be looked for again at once, should the catalog drop it. */
static void forget_sought(struct versions *versions, struct zt_text name)
{
    const uint64_t hash = zt_xxh3(name.bytes, name.length);

    pthread_mutex_lock(&versions->lock);
    if (versions->sought[hash % VERSIONS_SOUGHT].hash == hash)
        versions->sought[hash % VERSIONS_SOUGHT].hash = 0;
    pthread_mutex_unlock(&versions->lock);
}

/* Returns true if a file may belong to the model: also a part of a split GGUF, from which the
 * catalog finds the others. */
static bool may_be_of(const char *path, struct zt_text name)
{
    char model[MODEL_NAME_MAX + 1];
    struct zt_text text = {model, 0};
    uint32_t number;
    uint32_t count;
    size_t stem;

    if (!model_path_name(path, model))
        return false;
    text.length = strlen(model);
    return zt_text_equal(name, text) || (zt_part_name_split(text, &stem, &number, &count) &&
                                         stem == name.length && zt_text_starts_with(text, name));
}

/* An index with a variant does not begin with the model's name, so the whole folder is visited. */
enum zt_status versions_look_up(struct store *store, struct zt_text name, store_visit visit,
                                void *context, struct zt_error *error)
{
    struct versions *versions = versions_of(store);
    struct versions_place place;
    struct zt_text folder;
    bool is_found = false;
    enum zt_status status = versions_place_find(versions, name, &place, error);

    if (status != ZT_OK)
        return status == ZT_NOT_FOUND ? ZT_OK : status;
    folder = folder_of(place.rest);
    for (size_t i = lower_bound(place.tree, folder); i < place.tree->count; i++) {
        const struct history_file *file = &place.tree->files[i];
        const struct file_identity identity = versions_identity(file);
        char path[MODEL_PATH_SIZE];

        if (!zt_text_starts_with(zt_text_from(file->path), folder))
            break;
        if (!write_path(&place, file, path) || !may_be_of(path, name))
            continue;
        is_found = true;
        if (!visit(context, path, &identity))
            break;
    }
    if (is_found)
        forget_sought(versions, name);
    versions_place_release(&place);
    return ZT_OK;
}
