/* Finds parts that an earlier split of the same name has left. */
#include "conversion/earlier_parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk/disk_file.h"
#include "zt/join.h"

#define EXTENSION ".safetensors"

/* A path's folder, with its slash, and the name that all parts begin with. */
struct wanted {
    struct zt_text folder;
    struct zt_text stem;
    uint32_t count;
};

static struct wanted wanted_at(const char *path, uint32_t count)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const struct zt_text extension = zt_text_from(EXTENSION);
    struct zt_text stem = zt_text_from(name);

    if (zt_text_ends_like(stem, extension))
        stem.length -= extension.length;
    return (struct wanted){{path, (size_t)(name - path)}, stem, count};
}

static bool is_earlier(const struct wanted *wanted, struct zt_text name)
{
    const struct zt_text extension = zt_text_from(EXTENSION);
    size_t stem_length;
    uint32_t number;
    uint32_t count;

    if (!zt_text_ends_with(name, extension))
        return false;
    name.length -= extension.length;
    return zt_part_name_split(name, &stem_length, &number, &count) && count != wanted->count &&
           zt_text_equal((struct zt_text){name.bytes, stem_length}, wanted->stem);
}

/* Finds the first one by name, so that the message is always the same. */
static enum zt_status search(DIR *folder, const struct wanted *wanted, char **out_found)
{
    const struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        char *found;

        if (!is_earlier(wanted, zt_text_from(entry->d_name)))
            continue;
        if (asprintf(&found, "%.*s%s", (int)wanted->folder.length, wanted->folder.bytes,
                     entry->d_name) < 0)
            return ZT_NO_MEMORY;
        if (*out_found == NULL || strcmp(found, *out_found) < 0) {
            free(*out_found);
            *out_found = found;
        } else {
            free(found);
        }
    }
    return ZT_OK;
}

enum zt_status earlier_parts_find(const char *path, uint32_t count, char **out_found,
                                  struct zt_error *error)
{
    const struct wanted wanted = wanted_at(path, count);
    char *name = wanted.folder.length > 0 ? strndup(path, wanted.folder.length) : strdup(".");
    DIR *folder = name != NULL ? opendir(name) : NULL;
    const int number = errno;
    enum zt_status status = ZT_OK;

    *out_found = NULL;
    if (name == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a folder's name");
    free(name);
    if (folder == NULL && number != ENOENT) {
        errno = number;
        return disk_fail(error, "opening its folder");
    }
    if (folder == NULL) /* writing will report that */
        return ZT_OK;
    status = search(folder, &wanted, out_found);
    closedir(folder);
    return status == ZT_OK ? ZT_OK
                           : zt_fail(error, status, NULL, ZT_NO_OFFSET, "no memory for a path");
}
