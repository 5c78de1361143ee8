/* A running server: starts its parts in order, drains, and stops them in reverse. */
#ifndef SERVE_INSTANCE_H
#define SERVE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/service_manager.h"
#include "config/config.h"

struct instance;

/* Binds the address (or takes over the sockets of a service manager, if there are any), opens the
 * root, confines the process, starts workers and loops, and begins the first scan. Copies the
 * configuration; config_file is the file that it was read from, or NULL. On failure returns NULL
 * with one line in error, and whether a file that belongs to the configuration is to blame. */
struct instance *instance_start(const struct config *config, const char *config_file,
                                const struct service_sockets *inherited, char *error,
                                size_t error_size, bool *out_misconfigured);

/* The address it listens on, with the actual port: "127.0.0.1:8080". */
const char *instance_address(const struct instance *instance);

/* The configuration that it was started with. */
const struct config *instance_config(const struct instance *instance);

/* Whether the models are in an object store that does not answer, and no earlier process has left a
 * list of them. */
bool instance_is_stranded(const struct instance *instance);

/* Whether the first scan is complete, and whether there are any models. */
bool instance_is_loaded(const struct instance *instance);
bool instance_has_models(const struct instance *instance);

/* Number of files that are not served because of their names. */
size_t instance_misfits(const struct instance *instance);

/* Looks for new, changed and removed files. */
void instance_refresh(struct instance *instance);

/* Puts in force what a changed configuration says of keys that reload (config_key.reloads), and
 * what the files that it names contain now. If any of that is broken, returns false with one line
 * in error, and everything old stays in force. */
bool instance_reload(struct instance *instance, const struct config *wanted, char *error,
                     size_t error_size);

/* Whether every loop has turned since the last call. */
bool instance_is_turning(const struct instance *instance);

/* From now on /readyz answers 503, and all answers say that the connection ends. */
void instance_leave(struct instance *instance);

/* The same, and begins to close the listening sockets; open requests continue, and connections
 * without one end soon. */
void instance_drain(struct instance *instance);

/* Whether all listening sockets are closed. */
bool instance_is_drained(const struct instance *instance);

/* Number of open connections, those that are turned away included. */
unsigned instance_connections(void);

/* Number of requests in progress. */
unsigned instance_active(const struct instance *instance);

/* Closes open connections, ends all threads and frees everything. Takes NULL. */
void instance_stop(struct instance *instance);

#endif
