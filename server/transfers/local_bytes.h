/* Finds the bytes of a file on a server that are here already (pull --have). Digests of the
 * server's tensors are the file's own, or the manifest's, if this program's server serves the
 * file. */
#ifndef TRANSFERS_LOCAL_BYTES_H
#define TRANSFERS_LOCAL_BYTES_H

#include "download/download.h"
#include "transfers/local_tensors.h"

/* Adds what local files have of a version, and tensors of which they have another version. Finds
 * nothing if the server states no digests. ZT_NO_MEMORY. */
enum zt_status local_bytes_find(struct local_tensors *local, struct client *client,
                                struct web_file *web, struct copied_bytes *copied,
                                struct zt_error *error);

#endif
