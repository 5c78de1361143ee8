#include "client/part_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zt/digest.h"
#include "zt/source.h"

#define HASH_BYTES ((size_t)1 << 20)
/* Times that a part file may get its final name, or go, between being opened and being locked. */
#define OPENINGS_MOST 8

enum zt_status part_paths_make(struct part_paths *paths, const char *path, struct zt_error *error)
{
    struct stat file;

    paths->path = path;
    if (stat(path, &file) == 0 && !S_ISREG(file.st_mode))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "it is there and no regular file");
    if (asprintf(&paths->part, "%s.part", path) < 0) {
        paths->part = NULL;
        return zt_fail_memory(error, "a path");
    }
    if (asprintf(&paths->journal, "%s.part.json", path) < 0) {
        paths->journal = NULL;
        return zt_fail_memory(error, "a path");
    }
    return ZT_OK;
}

void part_paths_free(struct part_paths *paths)
{
    free(paths->part);
    free(paths->journal);
}

/* --- the part file --- */

static enum zt_status fail_io(struct zt_error *error, const char *what)
{
    const int number = errno;

    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s: %s", what, strerrordesc_np(number));
    error->os_error = number;
    return ZT_IO;
}

/* Whoever had the file before may have given it its final name by now. */
static bool has_name(int descriptor, const char *path)
{
    struct stat opened;
    struct stat named;

    return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* ZT_STALE: the file that was opened has the name no longer. */
static enum zt_status open_locked(const char *path, int *out_descriptor, struct zt_error *error)
{
    const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    enum zt_status status = ZT_OK;
    struct stat file;

    if (descriptor < 0 && errno != ELOOP)
        return fail_io(error, "the part file cannot be made");
    if (descriptor < 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the part file is a symbolic link");
    if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode))
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the part file is no regular file");
    else if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "another process is pulling to here");
    else if (!has_name(descriptor, path))
        status = ZT_STALE;
    if (status == ZT_OK)
        *out_descriptor = descriptor;
    else
        close(descriptor);
    return status;
}

enum zt_status part_open(const struct part_paths *paths, int *out_descriptor,
                         struct zt_error *error)
{
    for (unsigned i = 0; i < OPENINGS_MOST; i++) {
        const enum zt_status status = open_locked(paths->part, out_descriptor, error);

        if (status != ZT_STALE)
            return status;
    }
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "other processes are pulling to here");
}

bool part_is_blank(int descriptor)
{
    struct stat file;

    return fstat(descriptor, &file) == 0 && file.st_blocks == 0;
}

/* --- digests --- */

static bool hash_file(const char *path, uint64_t size, uint8_t out_sha256[32])
{
    struct zt_source *source = NULL;
    struct zt_hasher *hasher = NULL;
    uint8_t *block = malloc(HASH_BYTES);
    struct zt_digest digest;
    struct zt_error error;
    bool is_read = block != NULL && zt_source_open_file(path, &source, &error) == ZT_OK &&
                   zt_source_size(source) == size &&
                   zt_hasher_new(ZT_DIGEST_SHA256, &hasher) == ZT_OK;

    for (uint64_t at = 0; is_read && at < size; at += HASH_BYTES) {
        const size_t length = size - at < HASH_BYTES ? (size_t)(size - at) : HASH_BYTES;

        is_read = zt_source_read_at(source, at, block, length, &error) == ZT_OK;
        if (is_read)
            zt_hasher_update(hasher, block, length);
    }
    if (is_read) {
        zt_hasher_finish(hasher, &digest);
        memcpy(out_sha256, digest.bytes, 32);
    }
    zt_hasher_free(hasher);
    zt_source_close(source);
    free(block);
    return is_read;
}

bool part_is_there(struct client *client, const struct part_paths *paths, struct web_file *file)
{
    uint8_t sha256[32];
    struct stat status;

    if (stat(paths->path, &status) != 0 || (uint64_t)status.st_size != file->size)
        return false;
    return web_file_ask_digest(client, file) && file->has_sha256 &&
           hash_file(paths->path, file->size, sha256) &&
           memcmp(sha256, file->sha256, sizeof(sha256)) == 0;
}

enum zt_status part_digest_check(const struct download *download, struct web_file *file,
                                 const uint8_t sha256[32], struct zt_error *error)
{
    struct client *client = NULL;

    if (!file->has_sha256 && (download->wants_digest || !download->is_covered(download->context))) {
        enum zt_status status = client_open(download->options, &client, error);
        bool is_same;

        if (status != ZT_OK)
            return status;
        is_same = web_file_ask_digest(client, file);
        client_close(client);
        if (!is_same)
            return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                           "the file on the server has become another one");
    }
    if (file->has_sha256 && memcmp(sha256, file->sha256, sizeof(file->sha256)) != 0)
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                       "the bytes are not those that the server's digest of the whole stands for");
    return ZT_OK;
}

/* --- the end --- */

static bool sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    int descriptor = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool synced = false;

    if (descriptor >= 0) {
        synced = fsync(descriptor) == 0;
        close(descriptor);
    }
    free(folder);
    return synced;
}

enum zt_status part_publish(const struct part_paths *paths, int descriptor, struct zt_error *error)
{
    if (!has_name(descriptor, paths->part))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                       "the part file has been moved, removed or replaced meanwhile");
    if (fsync(descriptor) != 0 || rename(paths->part, paths->path) != 0 ||
        !sync_folder(paths->path))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the file cannot be finished: %s",
                       strerrordesc_np(errno));
    unlink(paths->journal);
    return ZT_OK;
}

void part_forget(const struct part_paths *paths)
{
    unlink(paths->part);
    unlink(paths->journal);
}
