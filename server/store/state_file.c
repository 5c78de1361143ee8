/* Opening folders in the state folder; writing, reading and removing the files in it. */
#include "store/state_file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zt/digest.h"

/* XXH3-128 in hex and NUL. */
#define NAME_SIZE  33
#define NEW_PREFIX ".new-"
/* Larger than the state of 100 million components, or of the pieces of 8 TiB. */
#define FILE_MAX_BYTES ((uint64_t)1 << 28)

static void name_of(const char *path, char out_name[NAME_SIZE])
{
    uint64_t words[2];

    zt_xxh3_128(path, strlen(path), words);
    snprintf(out_name, NAME_SIZE, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
}

void state_folder_enter(struct state_folder *folder, int state_folder, const char *name)
{
    pthread_mutex_init(&folder->lock, NULL);
    folder->descriptor = -1;
    if (state_folder < 0 || (mkdirat(state_folder, name, 0700) != 0 && errno != EEXIST))
        return;
    folder->descriptor =
        openat(state_folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

void state_folder_leave(struct state_folder *folder)
{
    if (folder->descriptor >= 0)
        close(folder->descriptor);
    pthread_mutex_destroy(&folder->lock);
}

/* --- writing --- */

/* Writes the whole image and closes. A negative descriptor is a file that could not be opened. */
static bool write_out(int descriptor, const struct record_writer *image)
{
    size_t at = 0;

    if (descriptor < 0)
        return false;
    while (at < image->length) {
        ssize_t wrote = write(descriptor, image->bytes + at, image->length - at);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        at += (size_t)wrote;
    }
    assert(at <= image->length);
    return close(descriptor) == 0 && at == image->length;
}

bool state_file_write(struct state_folder *folder, const char *path,
                      const struct record_writer *image)
{
    char name[NAME_SIZE];
    char new_name[NAME_SIZE + sizeof(NEW_PREFIX)];
    bool written;

    if (image->failed) {
        errno = ENOMEM;
        return false;
    }
    assert(folder->descriptor >= 0 && image->length > 0);
    name_of(path, name);
    snprintf(new_name, sizeof(new_name), "%s%s", NEW_PREFIX, name);
    pthread_mutex_lock(&folder->lock);
    written = write_out(openat(folder->descriptor, new_name,
                               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600),
                        image) &&
              renameat(folder->descriptor, new_name, folder->descriptor, name) == 0;
    if (!written) {
        int os_error = errno;

        unlinkat(folder->descriptor, new_name, 0);
        errno = os_error;
    }
    pthread_mutex_unlock(&folder->lock);
    return written;
}

bool state_file_append(struct state_folder *folder, const char *path, uint64_t length,
                       const struct record_writer *image)
{
    char name[NAME_SIZE];
    struct stat info;
    bool written = false;
    int descriptor;

    if (image->failed || length + image->length > FILE_MAX_BYTES)
        return false;
    name_of(path, name);
    pthread_mutex_lock(&folder->lock);
    descriptor = openat(folder->descriptor, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor >= 0 && (fstat(descriptor, &info) != 0 || (uint64_t)info.st_size != length))
        close(descriptor);
    else
        written = write_out(descriptor, image);
    pthread_mutex_unlock(&folder->lock);
    return written;
}

/* --- reading --- */

uint8_t *state_file_read(const struct state_folder *folder, const char *path, size_t *out_length)
{
    char name[NAME_SIZE];
    struct stat info;
    uint8_t *bytes = NULL;
    bool whole = false;
    int descriptor;

    name_of(path, name);
    descriptor = openat(folder->descriptor, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        (uint64_t)info.st_size <= FILE_MAX_BYTES)
        bytes = malloc((size_t)info.st_size);
    if (bytes != NULL)
        whole = read(descriptor, bytes, (size_t)info.st_size) == (ssize_t)info.st_size;
    close(descriptor);
    if (!whole) {
        free(bytes);
        return NULL;
    }
    *out_length = (size_t)info.st_size;
    return bytes;
}

/* --- removing --- */

static int compare_names(const void *a, const void *b)
{
    return memcmp(a, b, NAME_SIZE);
}

static bool is_ours(const char *name)
{
    return strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)) == 0 ||
           (strlen(name) == NAME_SIZE - 1 && strspn(name, "0123456789abcdef") == NAME_SIZE - 1);
}

static void sweep(int folder, const char (*names)[NAME_SIZE], size_t count)
{
    int descriptor = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;

    if (stream == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    while ((entry = readdir(stream)) != NULL) {
        char name[NAME_SIZE];

        if (!is_ours(entry->d_name))
            continue;
        snprintf(name, sizeof(name), "%.*s", NAME_SIZE - 1, entry->d_name);
        if (count == 0 || bsearch(name, names, count, NAME_SIZE, compare_names) == NULL)
            unlinkat(folder, entry->d_name, 0);
    }
    closedir(stream);
}

void state_folder_sweep(struct state_folder *folder, const char *const *paths, size_t count)
{
    char(*names)[NAME_SIZE];

    if (folder->descriptor < 0)
        return;
    names = calloc(count + 1, NAME_SIZE);
    if (names == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        name_of(paths[i], names[i]);
    qsort(names, count, NAME_SIZE, compare_names);
    pthread_mutex_lock(&folder->lock);
    sweep(folder->descriptor, (const char(*)[NAME_SIZE])names, count);
    pthread_mutex_unlock(&folder->lock);
    free(names);
}
