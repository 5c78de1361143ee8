/* Opens the versions of a server's folder. */
#ifndef VERSIONS_VERSIONS_OPEN_H
#define VERSIONS_VERSIONS_OPEN_H

#include "zt/status.h"

struct server;

/* Puts the store of versions in place of server->store, a folder or bucket, if versions are kept.
 * Returns ZT_IO with a message for the user at the command line. */
enum zt_status versions_open(struct server *server, struct zt_error *error);

#endif
