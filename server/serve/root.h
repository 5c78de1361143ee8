/* Opens the root of a configuration as the server's store: a folder, or a bucket. */
#ifndef SERVE_ROOT_H
#define SERVE_ROOT_H

#include "base/server.h"

/* A folder is opened before the process is confined, so that it may be anywhere. What the
 * configuration names in it is withheld, and so is the configuration's own file, which may be NULL.
 * True, and nothing done, for a bucket. False with one line in error. */
bool root_open_folder(struct server *server, const char *config_file, char *error,
                      size_t error_size);

/* A bucket needs threads, which inherit the confinement, and the server's workers: it is opened
 * afterwards. True, and nothing done, for a folder. False with one line in error. */
bool root_open_bucket(struct server *server, char *error, size_t error_size);

/* Disk space that uploads must leave free where they are kept. */
uint64_t root_reserve_bytes(const struct config *config);

#endif
