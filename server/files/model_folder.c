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
    struct model_file file = {.rank = 0};

    (void)identity;
    if (!model_path_split(path, &file.name_length, &file.rank))
        return true;
    gathering->failed = zt_array_reserve(&folder->files, &folder->capacity, folder->count + 1,
                                         sizeof(file), FILES_MAX) != ZT_OK ||
                        asprintf(&file.path, "%s%s%s", gathering->root, slash, path) < 0;
    if (gathering->failed)
        return false;
    file.below = file.path + length + strlen(slash);
    folder->files[folder->count++] = file;
    return true;
}

/* By name, and the file that is served first among those of one name. */
static int compare(const void *a, const void *b)
{
    const struct model_file *one = a;
    const struct model_file *other = b;
    const size_t common =
        one->name_length < other->name_length ? one->name_length : other->name_length;
    const int order = memcmp(one->below, other->below, common);

    if (order != 0)
        return order;
    if (one->name_length != other->name_length)
        return one->name_length < other->name_length ? -1 : 1;
    return (one->rank > other->rank) - (one->rank < other->rank);
}

static bool has_name(const struct model_file *file, const char *name, size_t length)
{
    return file->name_length == length && memcmp(file->below, name, length) == 0;
}

/* The first file of this name, or NULL. */
static const struct model_file *find(const struct model_folder *folder, const char *name,
                                     size_t length)
{
    const struct model_file key = {.below = name, .name_length = length};
    size_t low = 0;
    size_t high = folder->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (compare(&folder->files[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < folder->count && has_name(&folder->files[low], name, length) ? &folder->files[low]
                                                                              : NULL;
}

static bool has_file(const struct model_folder *folder, const char *name, size_t length,
                     bool (*fits)(unsigned rank))
{
    const struct model_file *end = folder->files + folder->count;
    const struct model_file *file = find(folder, name, length);

    for (; file != NULL && file < end && has_name(file, name, length); file++)
        if (fits(file->rank))
            return true;
    return false;
}

static bool is_gguf(unsigned rank)
{
    return strcmp(model_extension(rank), ".gguf") == 0;
}

/* Whether the model that this file is a part of stands in the list itself. */
static bool is_joined_part(const struct model_folder *folder, const struct model_file *file)
{
    const struct zt_text name = {file->below, file->name_length};
    char first[MODEL_PATH_SIZE];
    size_t stem;
    uint32_t number;
    uint32_t count;

    if (!zt_part_name_split(name, &stem, &number, &count))
        return false;
    if (has_file(folder, name.bytes, stem, model_rank_is_index))
        return true;
    snprintf(first, sizeof(first), "%.*s-00001-of-%05" PRIu32, (int)stem, name.bytes, count);
    return number > 1 && is_gguf(file->rank) && has_file(folder, first, strlen(first), is_gguf);
}

static void drop(struct model_folder *folder,
                 bool (*is_out)(const struct model_folder *folder, const struct model_file *file))
{
    bool *out = calloc(folder->count + 1, sizeof(*out));
    size_t kept = 0;

    if (out == NULL)
        return; /* then more is shown */
    for (size_t i = 0; i < folder->count; i++)
        out[i] = is_out(folder, &folder->files[i]);
    for (size_t i = 0; i < folder->count; i++)
        if (out[i])
            free(folder->files[i].path);
        else
            folder->files[kept++] = folder->files[i];
    folder->count = kept;
    free(out);
}

static bool is_shadowed(const struct model_folder *folder, const struct model_file *file)
{
    return file > folder->files && has_name(file - 1, file->below, file->name_length);
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
    /* What is left out is counted. */
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    status = store->ops->list(store, gather, &gathering, error);
    folder.misfits = store->ops->misfits(store);
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
        free(folder->files[i].path);
    free(folder->files);
    *folder = (struct model_folder){.files = NULL};
}

bool model_file_is_hidden(const struct model_file *file, const struct zt_error *error)
{
    return error->status == ZT_DATA_SHARD ||
           (model_path_is_vague(file->path) && error->rule != NULL &&
            strcmp(error->rule, "zt §Detection UnknownFormat") == 0);
}
