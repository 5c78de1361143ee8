/* Decides which views a version has, and names them: "X.zt" becomes "X.safetensors", and the only
 * model of a repository becomes "model.safetensors", where transformers finds it. Stored files take
 * precedence over views of the same name. The SHA-256 of a view is computed in the background, like
 * a file's. */
#include "hub/version_views.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/server.h"
#include "views/model_view.h"
#include "views/view_digest.h"

#define ONLY              "model"
#define SAFETENSORS       ".safetensors"
#define SAFETENSORS_INDEX ".safetensors.index.json"
#define GGUF              ".gguf"
#define PROJECTOR         "mmproj"
#define DRAFTER           "mtp-"

/* --- the models --- */

/* Returns NULL if the version has no such view, or if it must be made again. */
static struct model_view *find_known(const struct server *server, const struct hub_version *version,
                                     const char *path, const char *stem,
                                     const struct file_identity *identity)
{
    for (size_t i = 0; version != NULL && i < version->view_count; i++) {
        struct model_view *view = version->views[i];

        if (strcmp(view->path, path) == 0 && strcmp(view->stem, stem) == 0 &&
            store_identity_equal(&view->identity, identity))
            return model_view_is_outdated(server, view) ? NULL : model_view_hold(view);
    }
    return NULL;
}

/* Returns NULL if there is none now. */
static struct model_view *find_view(struct server *server, const struct hub_version *version,
                                    const struct hub_version *previous, const struct hub_file *file,
                                    const char *stem)
{
    char path[MODEL_PATH_SIZE];
    struct model_view *view;
    struct zt_error error;

    if (snprintf(path, sizeof(path), "%s/%s", version->folder, file->path) >= (int)sizeof(path))
        return NULL;
    view = find_known(server, previous, path, stem, &file->identity);
    if (view == NULL)
        (void)model_view_make(server, path, stem, &file->identity, &view, &error);
    return view;
}

/* Finds the hash of a view's file. If it is unknown, it is computed after the model's hash. */
static void find_hash(struct server *server, const struct hub_file *model, struct hub_file *file)
{
    file->has_sha256 =
        view_digest_find(server, file->view, file->part, model->has_sha256, file->sha256);
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

/* Returns true if the file "other" is the model, of two files of the same name: its format is
 * preferred, or only it has a lower-case extension, as in the catalog. */
static bool is_before(const char *other, const char *path, size_t stem, unsigned rank)
{
    size_t other_stem;
    unsigned other_rank;

    if (!model_path_split(other, &other_stem, &other_rank) || other_stem != stem)
        return false;
    if (other_rank != rank)
        return other_rank < rank;
    if (model_path_has_noncanonical_extension(other) != model_path_has_noncanonical_extension(path))
        return model_path_has_noncanonical_extension(path);
    return strcmp(other, path) < 0;
}

/* Returns true if another file of the same name is the model. */
static bool is_shadowed(const struct hub_version *version, const char *path)
{
    size_t stem;
    unsigned rank;
    size_t at;

    if (!model_path_split(path, &stem, &rank))
        return true;
    at = hub_version_lower_bound(version, (struct zt_text){path, stem + 1});
    for (; at < version->count && strncmp(version->files[at].path, path, stem + 1) == 0; at++)
        if (is_before(version->files[at].path, path, stem, rank))
            return true;
    return has_file(version, stem, path, SAFETENSORS) ||
           has_file(version, stem, path, SAFETENSORS_INDEX);
}

/* Returns true if the file is, or may be, weights that transformers would find. */
static bool is_weights(const char *path)
{
    size_t stem;
    unsigned rank;

    if (strchr(path, '/') != NULL || !model_path_split(path, &stem, &rank))
        return false;
    return !model_path_needs_sniffing(path) || strncmp(path, "pytorch_model", 13) == 0;
}

/* Returns true if another file is the model that this one would have a view of. */
static bool is_hidden(const struct hub_version *version, const char *path)
{
    return model_view_is_of(path) && is_shadowed(version, path);
}

/* Returns true if a file is an addition to a GGUF in the same folder, named as llama.cpp's programs
 * do: an image projector ("mmproj-F16.gguf", "model-mmproj-F16.gguf") or draft layers
 * ("mtp-model.gguf"). */
static bool is_companion(const char *path)
{
    const struct zt_text text = zt_text_from(path);
    const char *projector = strcasestr(path, PROJECTOR);

    if (text.length <= strlen(GGUF) || strcasecmp(path + text.length - strlen(GGUF), GGUF) != 0)
        return false;
    if (strncasecmp(path, DRAFTER, strlen(DRAFTER)) == 0)
        return true;
    return projector != NULL && (projector == path || !isalnum((unsigned char)projector[-1])) &&
           !isalnum((unsigned char)projector[strlen(PROJECTOR)]);
}

/* Returns the index of the only model in the folder, among companions or among the other files;
 * SIZE_MAX if there is none or several. *out_found is their number, at most 2. */
static size_t find_only_among(const struct hub_version *version, bool companions,
                              unsigned *out_found)
{
    size_t only = SIZE_MAX;

    *out_found = 0;
    for (size_t i = 0; i < version->count && *out_found < 2; i++) {
        const char *path = version->files[i].path;

        if (!is_weights(path) || is_companion(path) != companions || is_hidden(version, path))
            continue;
        *out_found += 1;
        only = i;
    }
    return *out_found == 1 ? only : SIZE_MAX;
}

/* Returns the index of the folder's only model; SIZE_MAX if there is none or several. Companions
 * count only if there are no other models. */
static size_t find_only(const struct hub_version *version)
{
    unsigned found;
    const size_t only = find_only_among(version, false, &found);

    return found > 0 ? only : find_only_among(version, true, &found);
}

/* Returns true if a stored file has the path, or is in a folder of that path. */
static bool is_taken(const struct hub_version *version, const char *path)
{
    const size_t length = strlen(path);
    const size_t at = hub_version_lower_bound(version, zt_text_from(path));

    for (size_t i = at; i < version->count; i++) {
        const char *other = version->files[i].path;

        if (strncmp(other, path, length) != 0)
            return false;
        if (other[length] == '\0' || other[length] == '/')
            return true;
    }
    return false;
}

/* --- the files --- */

/* A model and the name of its view. */
struct named {
    size_t index;               /* of the model's file */
    int folder_length;          /* length of the folder's path, with the slash */
    char stem[MODEL_PATH_SIZE]; /* without the folder */
};

static void name_view(const struct hub_version *version, size_t index, bool is_only,
                      struct named *out_named)
{
    const char *path;
    const char *slash;

    assert(index < version->count);
    path = version->files[index].path;
    slash = strrchr(path, '/');
    out_named->index = index;
    out_named->folder_length = slash != NULL ? (int)(slash + 1 - path) : 0;
    if (is_only)
        strcpy(out_named->stem, ONLY);
    else
        snprintf(out_named->stem, sizeof(out_named->stem), "%.*s",
                 (int)stem_of(path) - out_named->folder_length, path + out_named->folder_length);
}

/* Returns part number i of a view; after the last one, its index. */
static uint32_t part_at(const struct model_view *view, uint32_t i)
{
    return i < view->part_count ? i : VIEW_INDEX;
}

static uint32_t file_count(const struct model_view *view)
{
    return view->part_count > 1 ? view->part_count + 1 : view->part_count;
}

static char *path_of(const struct hub_version *version, const struct named *named,
                     const struct model_view *view, uint32_t part)
{
    char name[VIEW_NAME_SIZE];
    char *path;

    model_view_name(view, part, name);
    return asprintf(&path, "%.*s%s", named->folder_length, version->files[named->index].path,
                    name) < 0
               ? NULL
               : path;
}

/* Adds a file after the others, which stay sorted. Returns false if out of memory. */
static bool add_file(struct server *server, struct hub_version *version, const struct named *named,
                     struct model_view *view, uint32_t part)
{
    struct hub_file *file = &version->files[version->count + version->view_path_count];
    char *path = path_of(version, named, view, part);

    assert(named->index < version->count);
    if (path == NULL)
        return false;
    if (is_taken(version, path)) {
        free(path);
        return true;
    }
    version->view_paths[version->view_path_count++] = path;
    *file = (struct hub_file){.path = path, .identity = view->identity, .view = view, .part = part};
    file->identity.size_bytes = part == VIEW_INDEX ? view->index_length : view->parts[part].length;
    find_hash(server, &version->files[named->index], file);
    return true;
}

/* Makes room for more files and their paths. */
static bool reserve(struct hub_version *version, size_t count)
{
    const size_t paths = version->view_path_count + count + 1;
    struct hub_file *files =
        realloc(version->files, (version->count + paths) * sizeof(*version->files));
    char **view_paths;

    if (files == NULL)
        return false;
    version->files = files;
    view_paths = realloc(version->view_paths, paths * sizeof(*view_paths));
    if (view_paths == NULL)
        return false;
    version->view_paths = view_paths;
    return true;
}

static bool add_files(struct server *server, struct hub_version *version, const struct named *named,
                      struct model_view *view)
{
    const uint32_t count = file_count(view);
    bool is_added = reserve(version, count);

    for (uint32_t i = 0; i < count && is_added; i++)
        is_added = add_file(server, version, named, view, part_at(view, i));
    return is_added;
}

/* Returns false if out of memory. */
static bool add_view(struct server *server, struct hub_version *version,
                     const struct hub_version *previous, const struct named *named)
{
    struct model_view *view =
        find_view(server, version, previous, &version->files[named->index], named->stem);

    if (view == NULL)
        return true;
    version->views[version->view_count++] = view;
    return add_files(server, version, named, view);
}

/* Orders files of one name by their models, as they were added: qsort need not keep their order. */
static int compare(const void *a, const void *b)
{
    const struct hub_file *one = a;
    const struct hub_file *other = b;
    const int order = strcmp(one->path, other->path);

    return order != 0 || one->view == NULL || other->view == NULL
               ? order
               : strcmp(one->view->path, other->view->path);
}

/* Views of two models may have files of the same name; only the first is kept. */
static void drop_duplicates(struct hub_version *version)
{
    size_t kept = 0;

    for (size_t i = 0; i < version->count; i++)
        if (kept == 0 || strcmp(version->files[kept - 1].path, version->files[i].path) != 0)
            version->files[kept++] = version->files[i];
    version->count = kept;
}

bool version_views_add(struct server *server, struct hub_version *version,
                       const struct hub_version *previous)
{
    const size_t only = find_only(version);
    size_t candidates = 0;
    bool is_added = true;

    for (size_t i = 0; i < version->count; i++)
        candidates += model_view_is_of(version->files[i].path);
    if (candidates == 0)
        return true;
    version->views = calloc(candidates, sizeof(struct model_view *));
    if (version->views == NULL)
        return false;
    for (size_t i = 0; i < version->count && is_added; i++) {
        const char *path = version->files[i].path;
        struct named named;

        if (!model_view_is_of(path) || is_shadowed(version, path))
            continue;
        name_view(version, i, i == only, &named);
        is_added = add_view(server, version, previous, &named);
    }
    assert(version->view_count <= candidates);
    version->count += version->view_path_count;
    qsort(version->files, version->count, sizeof(*version->files), compare);
    drop_duplicates(version);
    return is_added;
}

const struct hub_file *version_views_second(const struct hub_version *version, struct zt_text path)
{
    const struct hub_file *file =
        hub_version_find(version, (struct zt_text){ONLY SAFETENSORS, sizeof(ONLY SAFETENSORS) - 1});
    char name[MODEL_PATH_SIZE];
    const char *source;

    if (file == NULL || file->view == NULL || file->view->part_count > 1)
        return NULL;
    source = file->view->path + strlen(version->folder) + 1;
    if (snprintf(name, sizeof(name), "%.*s%s", (int)stem_of(source), source, SAFETENSORS) >=
        (int)sizeof(name))
        return NULL;
    return zt_text_is(path, name) && !is_taken(version, name) ? file : NULL;
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
