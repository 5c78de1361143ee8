/* Finding the files of a model's shards (zTensor 2 section 9), as the server finds them: the
 * container of the right size beside the model is the shard, whatever its bytes; without one, by
 * content. Only files of exactly the stated size are read. */
#include "commands/shard_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zt/digest.h"
#include "zt/shards.h"

/* Files of one size that are hashed for a shard: a folder of equally large files must not make this
 * endless. */
#define CANDIDATES_MAX 64

/* --- is it the one? --- */

static bool has_known_digest(const struct zt_shard *shard)
{
    enum zt_digest_algorithm algorithm;

    return zt_digest_algorithm((struct zt_text){shard->digest, shard->digest_length}, &algorithm);
}

/* Takes the source over when it is the shard, else closes it. */
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

/* --- by position --- */

/* What is no regular file is no shard, as in the server: a folder, or (EINVAL) a device or pipe;
 * ENXIO is a socket. */
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
    status = zt_source_open_file(path, &source, error);
    free(path);
    if (status == ZT_IO && is_absence(error->os_error)) {
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "shard %.*s is not there",
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
    /* With its slash, so that the root's own files are found, too. */
    folder = strndup(model_path, (size_t)(slash - model_path) + 1);
    stream = folder != NULL ? opendir(folder) : NULL;
    free(folder);
    return stream;
}

/* NULL when the entry is no file of the shard's size. */
static struct zt_source *open_candidate(DIR *folder, const char *name, const struct zt_shard *shard)
{
    struct stat facts;
    struct zt_source *source = NULL;
    struct zt_error error;
    int descriptor;

    if (fstatat(dirfd(folder), name, &facts, 0) != 0 || !S_ISREG(facts.st_mode) ||
        (uint64_t)facts.st_size != shard->size_bytes)
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

    /* One of wrong bytes (ZT_CORRUPT) is a fault to be told, not a reason to look on. */
    if (status == ZT_NOT_FOUND || status == ZT_INVALID) {
        /* What the sibling lacks stays said when nothing else is the shard either. */
        return find_by_content(model_path, shard, out_source) ? ZT_OK : status;
    }
    return status;
}
