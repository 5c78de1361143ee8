#include "transfers/pull_format.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/api_address.h"

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
