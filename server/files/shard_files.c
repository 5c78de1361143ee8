/* Finds the files of a model's shards (zTensor 2 section 9), as the server does: a container of the
 * right size and name beside the model is the shard, whatever its bytes; otherwise the content
 * decides. Only files of exactly the stated size are read. */
#include "files/shard_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/model_source.h"
#include "zt/digest.h"
#include "zt/shards.h"

/* Bounds the hashing in a folder of many equally large files. */
#define CANDIDATES_MAX 64

/* --- checking --- */

static bool has_known_digest(const struct zt_shard *shard)
{
    enum zt_digest_algorithm algorithm;

    return zt_digest_algorithm((struct zt_text){shard->digest, shard->digest_length}, &algorithm);
}

/* Takes over the source if it is the shard, else closes it. */
static enum zt_status accept_shard(const struct zt_shard *shard, struct zt_source *source,
                                   struct zt_source **out_source, struct zt_error *error)
{
    enum zt_status status = zt_shard_check(shard, source, error);

    if (status == ZT_OK && has_known_digest(shard))
        status = zt_shard_check_digest(shard, source, NULL, error);
    if (status != ZT_OK) {
        zt_source_close(source);
        return status;
    }
    *out_source = source;
    return ZT_OK;
}

/* --- by name --- */

/* Only regular files are shards, as in the server: EISDIR is a folder, EINVAL a device or pipe,
 * ENXIO a socket. */
static bool is_absence(int os_error)
{
    return os_error == ENOENT || os_error == EISDIR || os_error == EINVAL || os_error == ENXIO;
}

static enum zt_status open_sibling(const char *model_path, const struct zt_shard *shard,
                                   struct zt_source **out_source, struct zt_error *error)
{
    struct zt_source *source = NULL;
    char *path = zt_shard_sibling(model_path, shard);
    enum zt_status status;

    if (path == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a path");
    status = model_source_open(path, &source, error);
    free(path);
    if (status == ZT_IO && is_absence(error->os_error)) {
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "shard %.*s is missing",
                       (int)shard->name_length, shard->name);
    }
    return status == ZT_OK ? accept_shard(shard, source, out_source, error) : status;
}

/* --- by content --- */

static DIR *open_folder(const char *model_path)
{
    const char *slash = strrchr(model_path, '/');
    char *folder;
    DIR *stream;

    if (slash == NULL)
        return opendir(".");
    /* Keeps the slash, so that files in the root are found too. */
    folder = strndup(model_path, (size_t)(slash - model_path) + 1);
    stream = folder != NULL ? opendir(folder) : NULL;
    free(folder);
    return stream;
}

/* NULL if the entry is not a file of the shard's size. */
static struct zt_source *open_candidate(DIR *folder, const char *name, const struct zt_shard *shard)
{
    struct stat status;
    struct zt_source *source = NULL;
    struct zt_error error;
    int descriptor;

    if (fstatat(dirfd(folder), name, &status, 0) != 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size != shard->size_bytes)
        return NULL;
    descriptor = openat(dirfd(folder), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor >= 0 && zt_source_from_descriptor(descriptor, &source, &error) != ZT_OK)
        close(descriptor);
    return source;
}

static bool find_by_content(const char *model_path, const struct zt_shard *shard,
                            struct zt_source **out_source)
{
    DIR *folder = has_known_digest(shard) ? open_folder(model_path) : NULL;
    bool found = false;
    const struct dirent *entry;

    if (folder == NULL)
        return false;
    for (unsigned tried = 0;
         !found && tried < CANDIDATES_MAX && (entry = readdir(folder)) != NULL;) {
        struct zt_source *source = open_candidate(folder, entry->d_name, shard);
        struct zt_error error;

        if (source != NULL) {
            tried++;
            found = accept_shard(shard, source, out_source, &error) == ZT_OK;
        }
    }
    closedir(folder);
    return found;
}

enum zt_status shard_file_open(const char *model_path, const struct zt_shard *shard,
                               struct zt_source **out_source, struct zt_error *error)
{
    enum zt_status status = open_sibling(model_path, shard, out_source, error);

    /* A sibling with wrong bytes (ZT_CORRUPT) is an error, not a reason to continue. */
    if (status == ZT_NOT_FOUND || status == ZT_INVALID) {
        /* If no other file is the shard, the failure of the sibling is reported. */
        return find_by_content(model_path, shard, out_source) ? ZT_OK : status;
    }
    return status;
}
