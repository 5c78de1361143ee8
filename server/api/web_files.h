/* The viewer's files, embedded by the build (server/web/embed.cmake), uncompressed and
 * compressed. */
#ifndef API_WEB_FILES_H
#define API_WEB_FILES_H

#include <stddef.h>

#include "http/fields/negotiate.h"

struct web_file {
    const char *path; /* "HASH/app.js", below /ui/assets; empty for the page */
    const char *media_type;
    const char *etag; /* of the uncompressed form */
    struct {
        const unsigned char *bytes;
        size_t length;
    } forms[CODING_NONE]; /* indexed by enum coding */
};

extern const struct web_file web_page;
extern const struct web_file web_assets[];
extern const size_t web_asset_count;

#endif
