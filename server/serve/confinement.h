/* What a server may still do once it runs: the places that its configuration names, and nothing
 * else (sandbox/sandbox.h). */
#ifndef SERVE_CONFINEMENT_H
#define SERVE_CONFINEMENT_H

#include "config/config.h"

/* Confines the process, unless the key sandbox is false, and says in the log what is in force. To
 * be called when the sockets and a root that is a folder are open, and before the first thread
 * starts; a bucket is connected to afterwards, which needs threads. config_file: the file that
 * SIGHUP reads again; NULL if there is none. */
void confinement_begin(const struct config *config, const char *config_file);

/* After a failed reload: the first file, among config_file (or NULL) and those that the
 * configuration names, that this user may read and the process may not, since it is in none of the
 * folders that were known at the start. NULL: none. */
const char *confinement_forbidden(const struct config *config, const char *config_file);

/* After a reload, which may have brought the first secrets: keeps them out of core dumps. */
void confinement_renew(const struct config *config);

#endif
