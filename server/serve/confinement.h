/* Confines a running server to the files and folders that its configuration names
 * (sandbox/sandbox.h). */
#ifndef SERVE_CONFINEMENT_H
#define SERVE_CONFINEMENT_H

#include "config/config.h"

/* Confines the process, unless the key sandbox is false, and logs the restrictions. Call it when
 * the sockets and a root that is a folder are open, and before the first thread starts. A bucket is
 * connected to afterwards, because that needs threads. config_file: the file that SIGHUP reads
 * again; NULL if there is none. */
void confinement_begin(const struct config *config, const char *config_file);

/* Called after a failed reload. Returns the first file, among config_file (or NULL) and those that
 * the configuration names, that this user may read but the process may not, because it is in none
 * of the folders known at start. Returns NULL if there is none. */
const char *confinement_forbidden(const struct config *config, const char *config_file);

/* Called after a reload, which may have added the first secrets: keeps them out of core dumps. */
void confinement_renew(const struct config *config);

#endif
