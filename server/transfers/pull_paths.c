#include "transfers/pull_paths.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "client/api_address.h"

bool pull_path_is_folder(const char *path)
{
    const size_t length = strlen(path);
    struct stat status;

    return (length > 0 && path[length - 1] == '/') ||
           (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

enum zt_status pull_path_make_folder(const char *path, struct zt_error *error)
{
    char *folders = strdup(path);
    int number = 0;
    struct stat info;

    assert(path[0] != '\0');
    if (folders == NULL)
        return zt_fail_memory(error, "a path");
    for (char *at = folders + 1; number == 0 && at[-1] != '\0'; at++) {
        const char here = *at;

        if (here != '/' && here != '\0')
            continue;
        *at = '\0';
        if (mkdir(folders, 0777) != 0 && errno != EEXIST)
            number = errno;
        *at = here;
    }
    free(folders);
    if (number != 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the folder cannot be made: %s",
                       strerrordesc_np(number));
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "it exists and is not a folder");
    return ZT_OK;
}

enum zt_status pull_path_make_output(const char *output, struct zt_error *error)
{
    return output != NULL && pull_path_is_folder(output) ? pull_path_make_folder(output, error)
                                                         : ZT_OK;
}

char *pull_path_beside(const char *output, const char *name)
{
    const char *slash = output != NULL ? strrchr(output, '/') : NULL;
    char *path = NULL;
    int length;

    if (output != NULL && pull_path_is_folder(output))
        length =
            asprintf(&path, "%s%s%s", output, output[strlen(output) - 1] == '/' ? "" : "/", name);
    else if (slash != NULL)
        length = asprintf(&path, "%.*s%s", (int)(slash + 1 - output), output, name);
    else
        length = asprintf(&path, "%s", name);
    return length < 0 ? NULL : path;
}

char *pull_path_main(const char *output, const char *name)
{
    if (output == NULL || pull_path_is_folder(output))
        return pull_path_beside(output, name);
    return strdup(output);
}

char *pull_path_of_shard(const char *main_path, const char *main_name, const char *name)
{
    const size_t stem = strlen(main_name) - strlen(".zt");
    const size_t length = strlen(main_path);
    const size_t kept =
        length > 3 && strcmp(main_path + length - 3, ".zt") == 0 ? length - 3 : length;
    char *path = NULL;

    assert(strlen(name) > stem);
    return asprintf(&path, "%.*s%s", (int)kept, main_path, name + stem) < 0 ? NULL : path;
}

static enum zt_status make_folder(const char *path, struct zt_error *error)
{
    struct stat status;

    if (mkdir(path, 0777) == 0)
        return ZT_OK;
    if (errno == EEXIST && lstat(path, &status) == 0 && !S_ISDIR(status.st_mode))
        errno = ENOTDIR;
    else if (errno == EEXIST)
        return ZT_OK;
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the folder %s: %s", path,
                   strerrordesc_np(errno));
}

enum zt_status pull_path_make_folders(const char *path, const char *name, struct zt_error *error)
{
    char *folders = strdup(path);
    enum zt_status status = ZT_OK;
    char *at;

    if (folders == NULL)
        return zt_fail_memory(error, "a path");
    assert(strlen(path) >= strlen(name));
    at = folders + strlen(path) - strlen(name);
    while (status == ZT_OK && (at = strchr(at, '/')) != NULL) {
        *at = '\0';
        status = make_folder(folders, error);
        *at++ = '/';
    }
    free(folders);
    return status;
}

/* --- formats --- */

static bool ends_with(const char *path, const char *format)
{
    const size_t length = strlen(path);
    const size_t ending = strlen(format);

    return length > ending + 1 && path[length - ending - 1] == '.' &&
           strcasecmp(path + length - ending, format) == 0;
}

const char *pull_format_of(const char *path)
{
    static const char *const formats[] = {"zt", "safetensors", "npz"};

    for (size_t i = 0; path != NULL && i < sizeof(formats) / sizeof(formats[0]); i++)
        if (ends_with(path, formats[i]))
            return formats[i];
    return NULL;
}

bool pull_format_differs(const char *url, const char *path, const struct model_file *file)
{
    const char *format = pull_format_of(path);
    struct client_place place;
    struct zt_error error;

    return format != NULL && !ends_with(file->name, format) &&
           client_place_read(url, &place, &error) == ZT_OK &&
           api_address_read(&place.address).kind != API_FILE;
}
