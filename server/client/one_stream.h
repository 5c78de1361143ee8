/* Fetches a file from a server that offers no ranges, or no validator: as one stream, always from
 * the beginning. */
#ifndef CLIENT_ONE_STREAM_H
#define CLIENT_ONE_STREAM_H

#include "client/download.h"
#include "client/part_file.h"
#include "client/web_file.h"

/* Fills the open part file. Fails as download_run does; the bytes cannot be used later. */
enum zt_status one_stream_fetch(const struct download *download, struct client *client,
                                const struct web_file *web, const struct part_file *file,
                                uint64_t *out_size_bytes, struct zt_error *error);

#endif
