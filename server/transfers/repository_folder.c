#include "transfers/repository_folder.h"

#include <assert.h>
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "client/repository.h"
#include "store/store.h"

#define FILES_MOST 100000

void repository_folder_free(struct repository_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        free(folder->files[i].path);
    free(folder->files);
}

static int compare(const void *a, const void *b)
{
    const struct folder_file *one = a;
    const struct folder_file *other = b;
    const int order = (int)repository_stage_of(one->name) - (int)repository_stage_of(other->name);

    return order != 0 ? order : strcmp(one->name, other->name);
}

static bool is_unfinished(const struct repository_folder *folder, const char *path)
{
    char name[MODEL_PATH_SIZE];
    const struct folder_file key = {.name = name};

    return repository_unfinished_name(path, name) &&
           bsearch(&key, folder->files, folder->count, sizeof(key), compare) != NULL;
}

static void leave_out_unfinished(struct repository_folder *folder)
{
    size_t kept = 0;

    for (size_t i = 0; i < folder->count; i++)
        folder->files[i].is_unfinished = is_unfinished(folder, folder->files[i].name);
    for (size_t i = 0; i < folder->count; i++)
        if (folder->files[i].is_unfinished)
            free(folder->files[i].path);
        else
            folder->files[kept++] = folder->files[i];
    folder->unfinished = folder->count - kept;
    folder->count = kept;
}

static enum zt_status add(struct repository_folder *folder, const char *path, size_t name_at,
                          struct zt_error *error)
{
    struct folder_file file = {.path = NULL};
    enum zt_status status;

    assert(name_at < strlen(path));
    if (!store_path_is_served(zt_text_from(path + name_at)))
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                       "no server can serve a file of this name: \"%s\"", path + name_at);
    status = zt_array_reserve(&folder->files, &folder->capacity, folder->count + 1,
                              sizeof(*folder->files), FILES_MOST);
    if (status == ZT_LIMIT)
        return zt_fail(error, status, NULL, ZT_NO_OFFSET, "the folder has more than %d files",
                       FILES_MOST);
    file.path = status == ZT_OK ? strdup(path) : NULL;
    if (file.path == NULL)
        return zt_fail_memory(error, "a list of files");
    file.name = file.path + name_at;
    folder->files[folder->count++] = file;
    return ZT_OK;
}

static bool is_file_behind(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Takes an entry of the walk. name_at: where its path in the folder begins. */
static enum zt_status visit(struct repository_folder *folder, FTS *walk, FTSENT *entry,
                            size_t name_at, struct zt_error *error)
{
    const bool is_inside = entry->fts_level > FTS_ROOTLEVEL;

    if (entry->fts_info == FTS_DP)
        return ZT_OK;
    if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s: %s", entry->fts_path,
                       strerrordesc_np(entry->fts_errno));
    if (is_inside && entry->fts_name[0] == '.') {
        folder->skipped++;
        fts_set(walk, entry, FTS_SKIP);
        return ZT_OK;
    }
    if (entry->fts_info == FTS_D)
        return ZT_OK;
    if (is_inside && is_file_behind(entry->fts_accpath))
        return add(folder, entry->fts_path, name_at, error);
    folder->skipped++;
    return ZT_OK;
}

/* Returns NULL at the end, and after a failure, which it puts into *out_status. */
static FTSENT *read_entry(FTS *walk, enum zt_status *out_status, struct zt_error *error)
{
    FTSENT *entry;

    errno = 0;
    entry = fts_read(walk);
    if (entry == NULL && errno != 0)
        *out_status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s", strerrordesc_np(errno));
    return entry;
}

enum zt_status repository_folder_list(const char *path, struct repository_folder *out_folder,
                                      struct zt_error *error)
{
    struct repository_folder folder = {.count = 0};
    char *root = strdup(path);
    char *roots[] = {root, NULL};
    enum zt_status status = ZT_OK;
    FTSENT *entry;
    FTS *walk;

    if (root == NULL)
        return zt_fail_memory(error, "a path");
    for (size_t end = strlen(root); end > 1 && root[end - 1] == '/'; end--)
        root[end - 1] = '\0';
    walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    if (walk == NULL)
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s", strerrordesc_np(errno));
    while (status == ZT_OK && (entry = read_entry(walk, &status, error)) != NULL)
        status =
            visit(&folder, walk, entry, strlen(root) + (root[0] != '/' || root[1] != '\0'), error);
    if (walk != NULL)
        fts_close(walk);
    free(root);
    if (status != ZT_OK) {
        repository_folder_free(&folder);
        return status;
    }
    if (folder.count > 0)
        qsort(folder.files, folder.count, sizeof(*folder.files), compare);
    leave_out_unfinished(&folder);
    *out_folder = folder;
    return ZT_OK;
}
