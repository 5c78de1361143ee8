/* Pulls a file from a server that gives no ranges, or nothing to tell one version from another: as
 * one stream, from the beginning, checked afterwards. */
#ifndef CLIENT_ONE_STREAM_H
#define CLIENT_ONE_STREAM_H

#include "client/part_paths.h"

/* As download_run; nothing of it can be taken up later. */
enum zt_status one_stream_run(const struct download *download, struct client *client,
                              const struct part_paths *paths, const struct web_file *file,
                              struct download_result *result, struct zt_error *error);

#endif
