/* Reads without waiting: a FIFO in place of a file must not stop a reload. */
#include "input/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads up to TEXT_FILE_MAX + 1 bytes. Returns errno. */
static int read_all(int descriptor, struct text_file *file)
{
    file->text = malloc(TEXT_FILE_MAX + 2);
    if (file->text == NULL)
        return ENOMEM;
    while (file->length <= TEXT_FILE_MAX) {
        const ssize_t count =
            read(descriptor, file->text + file->length, TEXT_FILE_MAX + 1 - file->length);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno;
        if (count == 0)
            break;
        file->length += (size_t)count;
    }
    file->text[file->length] = '\0';
    return 0;
}

static bool is_private(const struct stat *status)
{
    const mode_t foreign = status->st_mode & (S_IRWXG | S_IRWXO);

    if (status->st_uid == 0 && (foreign & ~(mode_t)S_IRGRP) == 0)
        return true;
    return status->st_uid == geteuid() && foreign == 0;
}

/* NULL: the file was read. */
static const char *read_regular(int descriptor, struct text_file *file)
{
    struct stat status;
    int failure;

    if (fstat(descriptor, &status) != 0)
        return strerrordesc_np(errno);
    if (!S_ISREG(status.st_mode))
        return "is not a regular file";
    file->is_public = (status.st_mode & S_IROTH) != 0;
    file->is_private = is_private(&status);
    failure = read_all(descriptor, file);
    if (failure != 0)
        return strerrordesc_np(failure);
    return file->length > TEXT_FILE_MAX ? "is larger than 1 MiB" : NULL;
}

bool text_file_read(const char *key, const char *path, struct text_file *out_file, char *error,
                    size_t error_size)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct text_file file = {.text = NULL};
    const char *failure;

    if (descriptor < 0) {
        snprintf(error, error_size, "%s: %s: %s", key, path, strerrordesc_np(errno));
        return false;
    }
    failure = read_regular(descriptor, &file);
    close(descriptor);
    if (failure != NULL) {
        snprintf(error, error_size, "%s: %s: %s", key, path, failure);
        text_file_free(&file);
        return false;
    }
    *out_file = file;
    return true;
}

void text_file_free(struct text_file *file)
{
    if (file->text != NULL)
        explicit_bzero(file->text, file->length);
    free(file->text);
    file->text = NULL;
}
