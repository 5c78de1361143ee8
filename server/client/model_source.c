#include "client/model_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "client/model_address.h"
#include "client/web_source.h"

#define CONNECTIONS 8

static struct client_options options = CLIENT_OPTIONS_DEFAULT;
/* Made with the first URL; ends with the process. */
static struct client *client;

struct client_options *model_source_options(void)
{
    return &options;
}

static enum zt_status need_client(struct zt_error *error)
{
    enum zt_status status;

    if (client != NULL)
        return ZT_OK;
    options.connections = CONNECTIONS;
    status = client_options_finish(&options, error);
    return status == ZT_OK ? client_open(&options, &client, error) : status;
}

enum zt_status model_source_client(struct client **out_client, struct zt_error *error)
{
    const enum zt_status status = need_client(error);

    if (status == ZT_OK)
        *out_client = client;
    return status;
}

static enum zt_status open_place(const struct client_place *place, struct zt_source **out_source,
                                 struct zt_error *error)
{
    struct web_file file;
    enum zt_status status = web_file_open(client, place, &file, error);

    if (status != ZT_OK)
        return status;
    if (!file.has_ranges)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                       "the server supports no ranges for this file, or does not identify its "
                       "version: pull it first");
    return web_source_open(client, &file, out_source, error);
}

enum zt_status model_source_open(const char *path, struct zt_source **out_source,
                                 struct zt_error *error)
{
    struct client_place place;
    enum zt_status status;

    if (!web_address_is_meant(path))
        return zt_source_open_file(path, out_source, error);
    status = client_place_read(path, &place, error);
    if (status == ZT_OK)
        status = need_client(error);
    return status == ZT_OK ? open_place(&place, out_source, error) : status;
}

/* A name without a model may be a folder's. */
static void advise_listing(const char *url, struct zt_error *error)
{
    const struct zt_error refusal = *error;

    if (url[strcspn(url, "?#")] != '\0' || url[strlen(url) - 1] == '/')
        return;
    zt_fail(error, refusal.status, NULL, ZT_NO_OFFSET, "%s; for a folder: ztserve ls %s/",
            refusal.message, url);
    error->os_error = refusal.os_error;
}

enum zt_status model_source_find(const char *path, struct zt_source **out_source,
                                 char **out_location, struct zt_error *error)
{
    const struct model_wish nothing = {.format = NULL};
    struct model_file file;
    enum zt_status status;

    *out_location = NULL;
    if (!web_address_is_meant(path))
        return zt_source_open_file(path, out_source, error);
    status = need_client(error);
    if (status == ZT_OK)
        status = model_address_find(client, path, &nothing, &file, error);
    if (status == ZT_IO && error->os_error == ENOENT)
        advise_listing(path, error);
    if (status == ZT_OK &&
        asprintf(out_location, "%s%s", file.place.address.origin, file.place.address.target) < 0) {
        *out_location = NULL;
        status = zt_fail_memory(error, "a URL");
    }
    if (status == ZT_OK)
        status = open_place(&file.place, out_source, error);
    if (status != ZT_OK) {
        free(*out_location);
        *out_location = NULL;
    }
    return status;
}

bool model_source_modified_ns(const struct zt_source *source, int64_t *out_time_ns)
{
    const struct web_file *file = web_source_file(source);
    struct stat info;

    if (file != NULL) {
        *out_time_ns = file->modified_s * CLOCK_NS_PER_S;
        return file->has_time;
    }
    if (fstat(zt_source_descriptor(source), &info) != 0)
        return false;
    *out_time_ns = (int64_t)info.st_mtim.tv_sec * CLOCK_NS_PER_S + info.st_mtim.tv_nsec;
    return true;
}
