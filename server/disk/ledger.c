/* Opens folders of ledgers; writes, reads and removes ledgers. */
#include "disk/ledger.h"

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

#include "disk/whole_file.h"
#include "zt/digest.h"

/* XXH3-128 in hex, and NUL. */
#define NAME_SIZE 33
/* Release 2 wrote replacements under names with this prefix. */
#define OLD_NEW_PREFIX ".new-"

static void name_of(const char *path, char out_name[NAME_SIZE])
{
    uint64_t words[2];

    zt_xxh3_128(path, strlen(path), words);
    snprintf(out_name, NAME_SIZE, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
}

void ledger_folder_open(struct ledger_folder *folder, int state_folder, const char *name)
{
    pthread_mutex_init(&folder->lock, NULL);
    folder->descriptor = -1;
    if (state_folder < 0 || (mkdirat(state_folder, name, 0700) != 0 && errno != EEXIST))
        return;
    folder->descriptor =
        openat(state_folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

void ledger_folder_close(struct ledger_folder *folder)
{
    if (folder->descriptor >= 0)
        close(folder->descriptor);
    pthread_mutex_destroy(&folder->lock);
}

/* --- writing --- */

bool ledger_replace(struct ledger_folder *folder, const char *path,
                    const struct record_writer *image)
{
    char name[NAME_SIZE];
    bool is_written;

    if (image->failed) {
        errno = ENOMEM;
        return false;
    }
    assert(folder->descriptor >= 0 && image->length > 0);
    name_of(path, name);
    pthread_mutex_lock(&folder->lock);
    is_written = whole_file_replace(folder->descriptor, name, image->bytes, image->length);
    pthread_mutex_unlock(&folder->lock);
    return is_written;
}

bool ledger_append(struct ledger_folder *folder, const char *path,
                   const struct record_writer *records, uint64_t most_bytes, uint64_t *io_bytes)
{
    char name[NAME_SIZE];
    bool is_written;

    assert(most_bytes <= LEDGER_MAX_BYTES && (records->failed || records->length > 0));
    if (*io_bytes == 0 || records->failed || *io_bytes + records->length > most_bytes)
        return false;
    name_of(path, name);
    pthread_mutex_lock(&folder->lock);
    is_written =
        whole_file_append(folder->descriptor, name, *io_bytes, records->bytes, records->length);
    pthread_mutex_unlock(&folder->lock);
    if (is_written)
        *io_bytes += records->length;
    return is_written;
}

/* --- reading --- */

uint8_t *ledger_read(const struct ledger_folder *folder, const char *path, size_t *out_length)
{
    char name[NAME_SIZE];

    if (folder->descriptor < 0)
        return NULL;
    name_of(path, name);
    return whole_file_read(folder->descriptor, name, LEDGER_MAX_BYTES, out_length);
}

size_t ledger_scan(const uint8_t *bytes, size_t length, const struct record_writer *header,
                   ledger_take take, void *context)
{
    struct record_reader reader = {.at = bytes, .left = length};
    const uint8_t *start = record_read_bytes(&reader, header->length);

    if (header->failed || start == NULL || memcmp(start, header->bytes, header->length) != 0)
        return 0;
    while (reader.left > 0)
        if (!take(context, &reader) || reader.failed)
            return 0;
    return length;
}

/* --- removing --- */

static int compare_names(const void *a, const void *b)
{
    return memcmp(a, b, NAME_SIZE);
}

static bool is_ours(const char *name)
{
    const size_t digits = strspn(name, "0123456789abcdef");

    return strncmp(name, OLD_NEW_PREFIX, strlen(OLD_NEW_PREFIX)) == 0 ||
           (digits == NAME_SIZE - 1 &&
            (name[digits] == '\0' || strcmp(name + digits, WHOLE_FILE_NEW_SUFFIX) == 0));
}

static void sweep(int folder, const char (*names)[NAME_SIZE], size_t count)
{
    int descriptor = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;

    assert(folder >= 0);
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
        if (count == 0 || strlen(entry->d_name) != NAME_SIZE - 1 ||
            bsearch(name, names, count, NAME_SIZE, compare_names) == NULL)
            unlinkat(folder, entry->d_name, 0);
    }
    closedir(stream);
}

void ledger_remove(struct ledger_folder *folder, const char *path)
{
    char name[NAME_SIZE];

    if (folder->descriptor < 0)
        return;
    name_of(path, name);
    pthread_mutex_lock(&folder->lock);
    (void)unlinkat(folder->descriptor, name, 0);
    pthread_mutex_unlock(&folder->lock);
}

void ledger_folder_sweep(struct ledger_folder *folder, const char *const *paths, size_t count)
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
