/* A running server: starts its parts in order, drains, and stops them in reverse order. */
#ifndef SERVE_INSTANCE_H
#define SERVE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "serve/service_manager.h"

struct instance;

/* Binds the address (or takes over the sockets of a service manager, if there are any), opens the
 * root, confines the process, starts workers and loops, and begins the first scan. Copies the
 * configuration; config_file is the file that it was read from, or NULL. On failure returns NULL
 * with one line in error, and reports whether a file that belongs to the configuration is to
 * blame. */
struct instance *instance_start(const struct config *config, const char *config_file,
                                const struct service_sockets *inherited, char *error,
                                size_t error_size, bool *out_misconfigured);

/* Returns the listening address, with the actual port: "127.0.0.1:8080". */
const char *instance_address(const struct instance *instance);

/* Returns the configuration at start. */
const struct config *instance_config(const struct instance *instance);

/* Returns true if the models are in an object store that does not respond, and no earlier process
 * has saved a list of them. */
bool instance_is_stranded(const struct instance *instance);

/* Return true if the first scan is complete, and if there are any models. */
bool instance_is_loaded(const struct instance *instance);
bool instance_has_models(const struct instance *instance);

/* Returns the number of files that are not served because of their names. */
size_t instance_misnamed_files(const struct instance *instance);

/* Looks for new, changed and removed files. */
void instance_refresh(struct instance *instance);

/* Applies the reloadable keys of a changed configuration (config_key.reloads), and the current
 * content of the files that it names. If any of that is invalid, returns false with one line in
 * error, and keeps everything old. */
bool instance_reload(struct instance *instance, const struct config *wanted, char *error,
                     size_t error_size);

/* Returns true if every loop has turned since the last call. */
bool instance_is_turning(const struct instance *instance);

/* From now on /readyz returns 503, and all responses announce the end of the connection. */
void instance_leave(struct instance *instance);

/* Does the same, and begins to close the listening sockets. Open requests continue; idle
 * connections end soon. */
void instance_drain(struct instance *instance);

/* Returns true if all listening sockets are closed. */
bool instance_is_drained(const struct instance *instance);

/* Returns the number of open connections, including those that are being refused. */
unsigned instance_connections(void);

/* Returns the number of requests in progress. */
unsigned instance_active(const struct instance *instance);

/* Closes open connections, ends all threads and frees everything. Accepts NULL. */
void instance_stop(struct instance *instance);

#endif
