/* Names of models, and the paths of their files (http-api, section 1): parts of
 * [A-Za-z0-9][A-Za-z0-9._-]* joined by '/', and the extensions in their order of precedence. Since
 * no part begins with a dot, no valid name contains "." or "..". */
#include <string.h>
#include <strings.h>

#include "store/store.h"

static const char *const extensions[] = {".zt", ".safetensors", ".gguf", ".mag", ".npz", ".npy"};

#define EXTENSION_COUNT (sizeof(extensions) / sizeof(extensions[0]))

const char *model_extension(unsigned rank)
{
    return rank < EXTENSION_COUNT ? extensions[rank] : NULL;
}

/* Not isalnum, which depends on the locale. */
static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_name_character(char c)
{
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
}

bool model_name_is_valid(struct zt_text name)
{
    bool at_start = true;

    if (name.length == 0 || name.length > MODEL_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.bytes[i];

        if (c == '/' ? at_start : !(at_start ? is_alphanumeric(c) : is_name_character(c)))
            return false;
        at_start = c == '/';
    }
    return !at_start;
}

static const char *last_dot(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strrchr(slash != NULL ? slash : path, '.');
}

bool model_path_is_misfit(const char *path)
{
    const char *dot = last_dot(path);
    size_t length;
    unsigned rank;

    for (size_t i = 0; dot != NULL && i < EXTENSION_COUNT; i++)
        if (strcasecmp(dot, extensions[i]) == 0)
            return !model_path_split(path, &length, &rank);
    return false;
}

bool model_path_split(const char *path, size_t *out_name_length, unsigned *out_rank)
{
    const char *dot = last_dot(path);

    if (dot == NULL)
        return false;
    for (unsigned rank = 0; rank < EXTENSION_COUNT; rank++) {
        size_t length = (size_t)(dot - path);

        if (strcmp(dot, extensions[rank]) != 0)
            continue;
        if (!model_name_is_valid((struct zt_text){path, length}))
            return false;
        *out_name_length = length;
        *out_rank = rank;
        return true;
    }
    return false;
}
