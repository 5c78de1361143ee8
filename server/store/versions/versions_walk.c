/* Finds the files of commits: by folder, and by the name of a model. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/store_folders.h"
#include "store/versions/versions_state.h"
#include "zt/digest.h"
#include "zt/join.h"

/* How often a name is looked for in vain. */
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
    bool may;

    if (!versions_knows(versions, name))
        return false;
    pthread_mutex_lock(&versions->lock);
    may = versions->sought[at].hash != hash ||
          clock_ms() - versions->sought[at].at_ms >= SOUGHT_AGAIN_MS;
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

/* A model that was found may be looked for again at once, should the catalog drop it. */
static void note_in_vain(struct versions *versions, struct zt_text name)
{
    const uint64_t hash = zt_xxh3(name.bytes, name.length);
    const size_t at = hash % VERSIONS_SOUGHT;

    pthread_mutex_lock(&versions->lock);
    versions->sought[at].hash = hash;
    versions->sought[at].at_ms = clock_ms();
    pthread_mutex_unlock(&versions->lock);
}

/* Returns false if the bytes of a file are neither kept nor in the folder. */
static bool is_there(struct versions *versions, const struct versions_place *place,
                     const struct history_file *file)
{
    struct zt_source *source;
    struct zt_error ignored;
    const enum zt_status status = versions_open_file(versions, place, file, &source, &ignored);

    if (status == ZT_OK)
        zt_source_close(source);
    return status != ZT_NOT_FOUND;
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

/* Returns true if there is such a file. An index with a variant does not begin with the model's
 * name, so the whole folder is visited. */
static bool visit_model(struct versions *versions, const struct versions_place *place,
                        struct zt_text name, store_visit visit, void *context)
{
    const struct zt_text folder = folder_of(place->rest);
    bool is_found = false;

    for (size_t i = lower_bound(place->tree, folder); i < place->tree->count; i++) {
        const struct history_file *file = &place->tree->files[i];
        const struct file_identity identity = versions_identity(file);
        char path[MODEL_PATH_SIZE];

        if (!zt_text_starts_with(zt_text_from(file->path), folder))
            break;
        if (!write_path(place, file, path) || !may_be_of(path, name) ||
            !is_there(versions, place, file))
            continue;
        is_found = true;
        if (!visit(context, path, &identity))
            break;
    }
    return is_found;
}

enum zt_status versions_look_up(struct store *store, struct zt_text name, store_visit visit,
                                void *context, struct zt_error *error)
{
    struct versions *versions = versions_of(store);
    struct versions_place place;
    bool is_found = false;
    enum zt_status status = versions_place_find(versions, name, &place, error);

    if (status == ZT_OK) {
        is_found = visit_model(versions, &place, name, visit, context);
        versions_place_release(&place);
    }
    if (!is_found)
        note_in_vain(versions, name);
    return status == ZT_NOT_FOUND ? ZT_OK : status;
}
