/* Who may do what: one version of everything about access that SIGHUP can change.
 *
 * A version is loaded whole or not at all and never changes afterwards. Whoever uses it holds it;
 * the requests of a loop hold it through the loop's lease (lease.h). A request sees the version
 * under which it began as request->access, to its end. */
#ifndef ACCESS_ACCESS_H
#define ACCESS_ACCESS_H

#include <stdatomic.h>
#include <stddef.h>

#include "config/config.h"

struct access {
    atomic_uint holders;
};

/* Everybody may do everything: for requests without a server (tests). Must not be held. */
extern const struct access access_unrestricted;

/* Loads what the configuration says about access and the files that it names. The caller holds the
 * result. NULL with one line in error that names the key and, if a file is wrong, the file and the
 * line. */
struct access *access_load(const struct config *config, char *error, size_t error_size);

/* From any thread. */
struct access *access_hold(struct access *access);
/* Takes NULL. */
void access_release(struct access *access);

#endif
