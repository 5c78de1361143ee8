#include "base/relative_path.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "zt/utf8.h"

static const char *fault_of_bytes(const char *path, size_t length)
{
    if (length == 0)
        return "is empty";
    if (path[0] == '/')
        return "is an absolute path";
    if (path[length - 1] == '/')
        return "refers to a folder";
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)path[i] < ' ' || path[i] == 0x7F || path[i] == '\\')
            return "has a backslash or a control character";
    return zt_utf8_valid(path, length) ? NULL : "is not UTF-8";
}

/* Of a component that is kept. */
static const char *fault_of_component(const char *component, size_t length)
{
    assert(length > 0);
    if (component[0] != '.')
        return NULL;
    return length == 2 && component[1] == '.' ? "leads out of the folder"
                                              : "refers to a hidden file";
}

const char *zt_relative_path_clean(char *path, size_t *length)
{
    const char *fault = fault_of_bytes(path, *length);
    size_t used = 0;
    size_t at = 0;

    while (fault == NULL && at < *length) {
        const char *slash = memchr(path + at, '/', *length - at);
        const size_t end = slash != NULL ? (size_t)(slash - path) : *length;
        const size_t size = end - at;
        const bool is_dropped = size == 0 || (size == 1 && path[at] == '.');

        if (is_dropped && slash == NULL)
            fault = "refers to a folder";
        if (!is_dropped) {
            fault = fault_of_component(path + at, size);
            if (used > 0)
                path[used++] = '/';
            memmove(path + used, path + at, size);
            used += size;
            assert(used <= end);
        }
        at = end + 1;
    }
    if (fault != NULL)
        return fault;
    *length = used;
    return used > 0 ? NULL : "refers to a folder";
}
