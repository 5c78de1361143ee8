/* Which views a version has, and what they are called: "X.zt" is "X.safetensors", and the only
 * model of a repository "model.safetensors", by which transformers finds it. Files that are there
 * have their names first. */
#include "hub/version_views.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/export_reply.h"
#include "base/server.h"
#include "hub/model_view.h"

#define ONLY              "model"
#define SAFETENSORS       ".safetensors"
#define SAFETENSORS_INDEX ".safetensors.index.json"

void version_view_text(const struct hub_file *file, const char *source,
                       char out_text[VIEW_TEXT_SIZE])
{
    const struct view_part *part = &file->view->parts[file->part];

    snprintf(out_text, VIEW_TEXT_SIZE, "view %d.%d of %s: %" PRIu32 "+%" PRIu32,
             MODEL_VIEW_REVISION, EXPORT_REVISION, source, part->first, part->count);
}

/* --- the models --- */

static struct model_view *find_known(const struct hub_version *version, const char *path,
                                     const struct file_identity *identity)
{
    for (size_t i = 0; version != NULL && i < version->view_count; i++)
        if (strcmp(version->views[i]->path, path) == 0 &&
            store_identity_equal(&version->views[i]->identity, identity))
            return model_view_hold(version->views[i]);
    return NULL;
}

/* NULL: there is none now. */
static struct model_view *find_view(struct server *server, const struct hub_version *version,
                                    const struct hub_version *previous, const struct hub_file *file)
{
    char path[MODEL_PATH_SIZE];
    struct model_view *view;
    struct zt_error error;

    if (snprintf(path, sizeof(path), "%s/%s", version->folder, file->path) >= (int)sizeof(path))
        return NULL;
    view = find_known(previous, path, &file->identity);
    if (view == NULL)
        (void)model_view_make(server, path, &file->identity, &view, &error);
    return view;
}

/* --- names --- */

static bool has_file(const struct hub_version *version, size_t stem_length, const char *stem,
                     const char *ending)
{
    char path[MODEL_PATH_SIZE];
    const int length = snprintf(path, sizeof(path), "%.*s%s", (int)stem_length, stem, ending);

    return length < (int)sizeof(path) &&
           hub_version_find(version, (struct zt_text){path, (size_t)length}) != NULL;
}

static size_t stem_of(const char *path)
{
    size_t length = 0;
    unsigned rank;

    (void)model_path_split(path, &length, &rank);
    return length;
}

/* Whether a file of the same name, in a format that is preferred, is the model. */
static bool is_shadowed(const struct hub_version *version, const char *path)
{
    size_t stem;
    unsigned rank;

    if (!model_path_split(path, &stem, &rank))
        return true;
    for (unsigned other = 0; other < rank; other++)
        if (has_file(version, stem, path, model_extension(other)))
            return true;
    return has_file(version, stem, path, SAFETENSORS) ||
           has_file(version, stem, path, SAFETENSORS_INDEX);
}

/* A file that is, or may be, weights which transformers would find. */
static bool is_weights(const char *path)
{
    size_t stem;
    unsigned rank;

    if (strchr(path, '/') != NULL || !model_path_split(path, &stem, &rank))
        return false;
    return !model_path_is_vague(path) || strncmp(path, "pytorch_model", 13) == 0;
}

/* The index of the file that is the only model of the folder. SIZE_MAX: there is none, or there are
 * several. */
static size_t find_only(const struct hub_version *version)
{
    size_t only = SIZE_MAX;

    for (size_t i = 0; i < version->count; i++) {
        if (!is_weights(version->files[i].path))
            continue;
        if (only != SIZE_MAX)
            return SIZE_MAX;
        only = i;
    }
    return only;
}

/* Tensors of a GGUF have names of their own, which transformers would take for missing ones. */
static bool is_gguf(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot != NULL && strcmp(dot, ".gguf") == 0;
}

/* --- the files --- */

/* Behind the others, which stay sorted. False: out of memory. */
static bool add_file(struct hub_version *version, struct model_view *view, const char *stem,
                     size_t stem_length)
{
    struct hub_file *file = &version->files[version->count + version->view_path_count];
    char *path = malloc(stem_length + sizeof(SAFETENSORS));

    if (path == NULL)
        return false;
    memcpy(path, stem, stem_length);
    memcpy(path + stem_length, SAFETENSORS, sizeof(SAFETENSORS));
    version->view_paths[version->view_path_count++] = path;
    *file = (struct hub_file){.path = path, .identity = view->identity, .view = view};
    file->identity.size_bytes = view->parts[0].length;
    return true;
}

/* Room for the files of a view of each file. */
static bool reserve(struct hub_version *version, size_t count)
{
    struct hub_file *files =
        realloc(version->files, (version->count + count + 1) * sizeof(*version->files));

    if (files == NULL)
        return false;
    version->files = files;
    version->views = calloc(count + 1, sizeof(struct model_view *));
    version->view_paths = calloc(count + 1, sizeof(char *));
    return version->views != NULL && version->view_paths != NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct hub_file *)a)->path, ((const struct hub_file *)b)->path);
}

bool version_views_add(struct server *server, struct hub_version *version,
                       const struct hub_version *previous)
{
    const size_t count = version->count;
    const size_t only = find_only(version);
    size_t candidates = 0;
    bool is_added = true;

    for (size_t i = 0; i < count; i++)
        candidates += model_view_is_of(version->files[i].path);
    if (candidates == 0)
        return true;
    if (!reserve(version, candidates))
        return false;
    for (size_t i = 0; i < count && is_added; i++) {
        const char *path = version->files[i].path;
        const bool is_only = i == only && !is_gguf(path);
        struct model_view *view;

        if (!model_view_is_of(path) || is_shadowed(version, path))
            continue;
        view = find_view(server, version, previous, &version->files[i]);
        if (view == NULL)
            continue;
        version->views[version->view_count++] = view;
        if (view->part_count == 1)
            is_added = add_file(version, view, is_only ? ONLY : path,
                                is_only ? strlen(ONLY) : stem_of(path));
    }
    version->count += version->view_path_count;
    qsort(version->files, version->count, sizeof(*version->files), compare);
    return is_added;
}

void version_views_free(struct hub_version *version)
{
    for (size_t i = 0; i < version->view_count; i++)
        model_view_release(version->views[i]);
    for (size_t i = 0; i < version->view_path_count; i++)
        free(version->view_paths[i]);
    free(version->views);
    free(version->view_paths);
}
