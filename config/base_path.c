/* Each segment is checked when it is read; only the first can be mistaken for one of the server. */
#include "config/base_path.h"

#include <string.h>

#include "config/value.h"

/* Together with the longest name of a model it leaves most of a target (8 KiB) to other names. */
#define BASE_PATH_MAX 255
/* RFC 3986 section 2.3. */
#define UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

static bool is_dots(const char *segment, size_t length)
{
    return (length == 1 || length == 2) && memcmp(segment, "..", length) == 0;
}

static bool is_own(const char *segment, size_t length)
{
    static const char *const own[] = {"v1",     "files",   "ui",      "api",         "healthz",
                                      "readyz", "metrics", "version", "openapi.json"};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (strlen(own[i]) == length && memcmp(own[i], segment, length) == 0)
            return true;
    return false;
}

const char *config_fault_of_path(const char *path)
{
    if (path[0] != '/')
        return "must begin with a slash";
    if (strlen(path) > BASE_PATH_MAX)
        return "is longer than 255 bytes";
    if (is_own(path + 1, strcspn(path + 1, "/")))
        return "begins like one of the server's paths";
    while (*path == '/') {
        const size_t length = strspn(++path, UNRESERVED);

        if (length == 0 && (*path == '\0' || *path == '/'))
            return "must not end in a slash or have an empty part";
        if (is_dots(path, length) && (path[length] == '\0' || path[length] == '/'))
            return "must not have a part . or ..";
        path += length;
    }
    return *path == '\0' ? NULL : "may have letters, digits, - . _ ~ and slashes only";
}

bool config_validate_base_path(const struct config *config, struct config_message *message)
{
    const char *fault =
        config->base_path[0] != '\0' ? config_fault_of_path(config->base_path) : NULL;

    return fault == NULL ||
           config_fail(message, "base_path: \"%.300s\" %s", config->base_path, fault);
}
