#include "disk/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool named_file_is_at(int descriptor, const char *path)
{
    struct stat opened;
    struct stat named;

    return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool named_file_sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    int descriptor = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool synced = false;

    if (descriptor >= 0) {
        /* EINVAL: the file system cannot sync folders. */
        synced = fsync(descriptor) == 0 || errno == EINVAL;
        close(descriptor);
    }
    free(folder);
    return synced;
}
