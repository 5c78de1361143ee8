/* Lists a folder through the store, so that commands and server agree on names and links. */
#include "files/model_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"
#include "store/store.h"
#include "zt/join.h"

#define FILES_MAX ((size_t)1 << 24)

bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

struct gathering {
    const char *root;
    struct model_folder *folder;
    bool failed;
};

static bool gather(void *context, const char *path, const struct file_identity *identity)
{
    struct gathering *gathering = context;
    struct model_folder *folder = gathering->folder;
    const size_t length = strlen(gathering->root);
    const char *slash = length > 0 && gathering->root[length - 1] == '/' ? "" : "/";
    struct folder_model file = {.rank = 0};
    char name[MODEL_NAME_MAX + 1];
    size_t name_length;

    (void)identity;
    if (!model_path_split(path, &name_length, &file.rank) || !model_path_name(path, name))
        return true;
    gathering->failed = zt_array_reserve(&folder->files, &folder->capacity, folder->count + 1,
                                         sizeof(file), FILES_MAX) != ZT_OK ||
                        (file.name = strdup(name)) == NULL ||
                        asprintf(&file.path, "%s%s%s", gathering->root, slash, path) < 0;
    if (gathering->failed) {
        free(file.name);
        return false;
    }
    file.below = file.path + length + strlen(slash);
    folder->files[folder->count++] = file;
    return true;
}

/* Sorts by name; among files of one name, the file that is served comes first. */
static int compare(const void *a, const void *b)
{
    const struct folder_model *one = a;
    const struct folder_model *other = b;
    const int order = strcmp(one->name, other->name);

    if (order != 0)
        return order;
    return (one->rank > other->rank) - (one->rank < other->rank);
}

static bool has_name(const struct folder_model *file, const char *name)
{
    return strcmp(file->name, name) == 0;
}

/* Returns the first file of this name, or NULL. */
static const struct folder_model *find(const struct model_folder *folder, char *name)
{
    const struct folder_model key = {.name = name};
    size_t low = 0;
    size_t high = folder->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (compare(&folder->files[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < folder->count && has_name(&folder->files[low], name) ? &folder->files[low] : NULL;
}

static bool has_file(const struct model_folder *folder, char *name, bool (*fits)(unsigned rank))
{
    const struct folder_model *end = folder->files + folder->count;
    const struct folder_model *file = find(folder, name);

    for (; file != NULL && file < end && has_name(file, name); file++)
        if (fits(file->rank))
            return true;
    return false;
}

static bool is_gguf(unsigned rank)
{
    return model_extension(rank) != NULL && strcmp(model_extension(rank), ".gguf") == 0;
}

/* Earlier releases of diffusers put the variant last: "m-00001-of-00002.fp16" is part of
 * "m.fp16". */
static bool is_part_of_variant(const struct model_folder *folder, const char *name)
{
    const char *dot = strrchr(name, '.');
    char whole[MODEL_PATH_SIZE];
    size_t stem;
    uint32_t number;
    uint32_t count;

    if (dot == NULL ||
        !zt_part_name_split((struct zt_text){name, (size_t)(dot - name)}, &stem, &number, &count))
        return false;
    snprintf(whole, sizeof(whole), "%.*s%s", (int)stem, name, dot);
    return has_file(folder, whole, model_rank_is_index);
}

/* Returns true if the model to which this part belongs is in the list. */
static bool is_joined_part(const struct model_folder *folder, const struct folder_model *file)
{
    const struct zt_text name = zt_text_from(file->name);
    char whole[MODEL_PATH_SIZE];
    char first[MODEL_PATH_SIZE];
    size_t stem;
    uint32_t number;
    uint32_t count;

    if (!zt_part_name_split(name, &stem, &number, &count))
        return is_part_of_variant(folder, file->name);
    snprintf(whole, sizeof(whole), "%.*s", (int)stem, name.bytes);
    if (has_file(folder, whole, model_rank_is_index))
        return true;
    snprintf(first, sizeof(first), "%.*s-00001-of-%05" PRIu32, (int)stem, name.bytes, count);
    return number > 1 && is_gguf(file->rank) && has_file(folder, first, is_gguf);
}

static void free_file(struct folder_model *file)
{
    free(file->path);
    free(file->name);
}

static void drop(struct model_folder *folder,
                 bool (*is_out)(const struct model_folder *folder, const struct folder_model *file))
{
    bool *out = calloc(folder->count + 1, sizeof(*out));
    size_t kept = 0;

    if (out == NULL)
        return; /* without memory, more files are shown */
    for (size_t i = 0; i < folder->count; i++)
        out[i] = is_out(folder, &folder->files[i]);
    for (size_t i = 0; i < folder->count; i++)
        if (out[i])
            free_file(&folder->files[i]);
        else
            folder->files[kept++] = folder->files[i];
    folder->count = kept;
    free(out);
}

static bool is_shadowed(const struct model_folder *folder, const struct folder_model *file)
{
    return file > folder->files && has_name(file - 1, file->name);
}

enum zt_status model_folder_list(const char *path, struct model_folder *out_folder,
                                 struct zt_error *error)
{
    struct model_folder folder = {.files = NULL};
    struct gathering gathering = {path, &folder, false};
    struct store *store;
    enum zt_status status = store_local_view(path, &store, error);

    if (status != ZT_OK)
        return status;
    /* Files that are left out are counted instead of logged. */
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    status = store->ops->list(store, gather, &gathering, error);
    folder.misnamed_files = store->ops->misnamed_files(store);
    store->ops->close(store);
    if (status == ZT_OK && gathering.failed)
        status = zt_fail_memory(error, "a list of files");
    if (status != ZT_OK) {
        model_folder_free(&folder);
        return status;
    }
    if (folder.count > 0)
        qsort(folder.files, folder.count, sizeof(*folder.files), compare);
    drop(&folder, is_joined_part);
    folder.shadowed = folder.count;
    drop(&folder, is_shadowed);
    folder.shadowed -= folder.count;
    *out_folder = folder;
    return ZT_OK;
}

void model_folder_free(struct model_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        free_file(&folder->files[i]);
    free(folder->files);
    *folder = (struct model_folder){.files = NULL};
}

bool folder_model_is_hidden(const struct folder_model *file, const struct zt_error *error)
{
    return error->status == ZT_DATA_SHARD ||
           (model_path_needs_sniffing(file->path) && error->rule != NULL &&
            strcmp(error->rule, "zt §Detection UnknownFormat") == 0);
}
