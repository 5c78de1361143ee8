/* A file on a server as a source: read by ranges through a small cache that reads ahead for
 * sequential readers. All bytes are of one version of the file; if it is replaced, reading
 * fails. */
#ifndef CLIENT_WEB_SOURCE_H
#define CLIENT_WEB_SOURCE_H

#include "client/web_file.h"
#include "zt/source.h"

/* The file must have ranges; it is copied. The client must outlive the source. ZT_NO_MEMORY. */
enum zt_status web_source_open(struct client *client, const struct web_file *file,
                               struct zt_source **out_source, struct zt_error *error);

/* The file of a source from web_source_open; NULL for other sources. */
const struct web_file *web_source_file(const struct zt_source *source);

#endif
