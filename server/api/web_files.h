/* The viewer's files, embedded by the build (server/web/embed.cmake) as they are and compressed. */
#ifndef API_WEB_FILES_H
#define API_WEB_FILES_H

#include <stddef.h>

#include "http/fields/negotiate.h"

struct web_file {
    const char *path; /* "HASH/app.js", below /ui/assets; of the page empty */
    const char *media_type;
    const char *etag; /* of the form without a coding */
    struct {
        const unsigned char *bytes;
        size_t length;
    } forms[CODING_NONE]; /* by enum coding */
};

extern const struct web_file web_page;
extern const struct web_file web_assets[];
extern const size_t web_asset_count;

#endif
