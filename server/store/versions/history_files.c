/* Makes folders and replaces files durably. */
#include "store/versions/history_files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/disk_file.h"

#define FOLDER_MODE 0700
#define FILE_MODE   0600

void history_close_folder(int descriptor)
{
    const int os_error = errno;

    assert(descriptor >= 0);
    close(descriptor);
    errno = os_error;
}

bool history_sync(int descriptor, int (*sync)(int descriptor))
{
    int failed;

    assert(descriptor >= 0 && sync != NULL);
    do {
        failed = sync(descriptor);
    } while (failed != 0 && errno == EINTR);
    return failed == 0;
}

bool history_folder_make(int above, const char *name)
{
    assert(above >= 0 && name[0] != '\0');
    if (mkdirat(above, name, FOLDER_MODE) != 0 && errno != EEXIST)
        return false;
    return history_sync(above, fsync);
}

bool history_file_replace(int folder, const char *name, const void *bytes, size_t length)
{
    char new_name[NAME_MAX + 1];
    int descriptor;
    bool is_written;
    int os_error;

    assert(folder >= 0 && bytes != NULL);
    if ((size_t)snprintf(new_name, sizeof(new_name), "%s" HISTORY_NEW_SUFFIX, name) >=
        sizeof(new_name)) {
        errno = ENAMETOOLONG;
        return false;
    }
    descriptor =
        openat(folder, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (descriptor < 0)
        return false;
    is_written = disk_write(descriptor, bytes, length, 0) && history_sync(descriptor, fsync);
    history_close_folder(descriptor);
    if (is_written && renameat(folder, new_name, folder, name) == 0)
        return history_sync(folder, fsync);
    os_error = errno;
    unlinkat(folder, new_name, 0);
    errno = os_error;
    return false;
}

bool history_folder_visit(int folder, const char *name,
                          bool (*visit)(void *context, int folder, const char *name), void *context)
{
    const int descriptor = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;
    bool goes_on = true;
    int os_error;

    if (stream == NULL) {
        if (descriptor >= 0)
            history_close_folder(descriptor);
        return false;
    }
    while (goes_on && (errno = 0, entry = readdir(stream)) != NULL)
        if (entry->d_name[0] != '.')
            goes_on = visit(context, descriptor, entry->d_name);
    goes_on = goes_on && errno == 0;
    os_error = errno;
    closedir(stream);
    errno = os_error;
    return goes_on;
}
