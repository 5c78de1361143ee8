#include "files/path_folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/model_source.h"
#include "client/web_address.h"

struct zt_text path_last_segment(const char *path)
{
    const size_t end = web_address_is_meant(path) ? strcspn(path, "?#") : strlen(path);
    const char *slash = memrchr(path, '/', end);
    const char *start = slash != NULL ? slash + 1 : path;

    return (struct zt_text){start, (size_t)(path + end - start)};
}

struct zt_text path_parent(const char *path)
{
    return (struct zt_text){path, (size_t)(path_last_segment(path).bytes - path)};
}

/* Only regular files are parts and shards, as in the server: EISDIR is a folder, EINVAL a device or
 * pipe, ENXIO a socket. */
static bool is_absence(int os_error)
{
    return os_error == ENOENT || os_error == EISDIR || os_error == EINVAL || os_error == ENXIO;
}

static enum zt_status open_file(struct part_folder *folder, const char *path,
                                struct zt_source **out_source, struct file_identity *out_identity,
                                struct zt_error *error)
{
    struct zt_error own;
    const enum zt_status status = model_source_open(path, out_source, &own);

    (void)folder;
    (void)out_identity;
    if (status == ZT_OK)
        return ZT_OK;
    if (error != NULL)
        *error = own;
    return status == ZT_IO && is_absence(own.os_error) ? ZT_NOT_FOUND : status;
}

/* Compares folders with links followed. */
static bool is_below(struct part_folder *folder, const char *model_path, const char *path,
                     const struct zt_shard *shard, struct zt_error *error)
{
    const struct zt_text parent = path_parent(model_path);
    char *model_folder = parent.length > 0 ? strndup(parent.bytes, parent.length) : strdup(".");
    char *file_folder = strndup(path, path_parent(path).length);
    char *real = model_folder != NULL ? realpath(model_folder, NULL) : NULL;
    char *real_file = file_folder != NULL ? realpath(file_folder, NULL) : NULL;
    const size_t length = real != NULL && strcmp(real, "/") != 0 ? strlen(real) : 0;
    const bool is_found =
        web_address_is_meant(model_path) ||
        (real != NULL && real_file != NULL && strncmp(real_file, real, length) == 0 &&
         (real_file[length] == '/' || real_file[length] == '\0'));

    (void)folder;
    free(model_folder);
    free(file_folder);
    free(real);
    free(real_file);
    if (!is_found)
        zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                "shard %.*s is not below the model's folder, or is missing",
                (int)shard->name_length, shard->name);
    return is_found;
}

static void visit_candidates(struct part_folder *folder, const char *model_path,
                             const struct zt_shard *shard, const struct zt_digest *wanted,
                             part_visitor *visit, void *context)
{
    const struct zt_text parent = path_parent(model_path);
    char *name = parent.length > 0 ? strndup(parent.bytes, parent.length) : strdup(".");
    DIR *stream = name != NULL ? opendir(name) : NULL;
    const struct dirent *entry;
    bool has_ended = false;

    assert(shard->kind == ZT_SHARD_CONTAINER && shard->digest != NULL);
    (void)folder;
    (void)wanted;
    free(name);
    if (stream == NULL)
        return;
    while (!has_ended && (entry = readdir(stream)) != NULL) {
        struct stat status;
        char *path = NULL;

        if (fstatat(dirfd(stream), entry->d_name, &status, 0) != 0 || !S_ISREG(status.st_mode) ||
            (uint64_t)status.st_size != shard->size_bytes)
            continue;
        if (asprintf(&path, "%.*s%s", (int)parent.length, parent.bytes, entry->d_name) < 0)
            break;
        has_ended = visit(context, path);
        free(path);
    }
    closedir(stream);
}

struct part_folder path_folder(void)
{
    static const struct part_folder_ops ops = {
        .open = open_file, .is_below = is_below, .visit_candidates = visit_candidates};

    return (struct part_folder){.ops = &ops, .skips_missing_parts = true, .compares_digests = true};
}
