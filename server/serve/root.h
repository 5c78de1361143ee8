/* Opens the root of a configuration as the server's store: a folder or a bucket, with upstreams. */
#ifndef SERVE_ROOT_H
#define SERVE_ROOT_H

#include "base/server.h"
#include "serve/upstream_files.h"

/* Opens a folder before the process is confined, so that it may be anywhere. Withholds the files in
 * it that the configuration names, and the configuration's own file, which may be NULL. Returns
 * true, and does nothing, for a bucket. Returns false with one line in error. */
bool root_open_folder(struct server *server, const char *config_file, char *error,
                      size_t error_size);

/* Withholds the files that a configuration names, inside or outside the root, in addition to
 * earlier ones. config_file may be NULL. Returns false without memory, or if there are too many. */
bool root_withhold(const struct server *server, const struct config *config,
                   const char *config_file);

/* Opens a bucket. This is done after the process is confined, because a bucket needs the server's
 * workers and other threads, which inherit the confinement. Returns true, and does nothing, for a
 * folder. Returns false with one line in error. */
bool root_open_bucket(struct server *server, char *error, size_t error_size);

/* Wraps the store in a mirror of the configured upstreams, after the process is confined. Returns
 * true, and does nothing, without upstreams. Returns false with one line in error. */
bool root_open_mirror(struct server *server, const struct upstream_tokens *tokens, char *error,
                      size_t error_size);

/* Passes on tokens that were loaded again. Returns false with one line in error. */
bool root_reload_mirror(struct server *server, const struct upstream_tokens *tokens, char *error,
                        size_t error_size);

/* Returns the disk space that uploads must leave free where they are stored. */
uint64_t root_reserve_bytes(const struct config *config);

#endif
