/* Uploads that outlive their request: found again at start, removed when nobody goes on with them.
 */
#ifndef UPLOAD_SHARED_KEPT_UPLOADS_H
#define UPLOAD_SHARED_KEPT_UPLOADS_H

#include "base/server.h"

/* Takes over what an earlier process left in the store; what none of the kinds of upload can go on
 * with is removed. */
void kept_uploads_restore(struct server *server);

/* Lets a worker look for expired ones now and then. NULL when there is no timer to be had. After
 * the loops have started. */
struct kept_uploads *kept_uploads_watch(struct server *server);
/* After the workers have stopped. Takes NULL. */
void kept_uploads_free(struct kept_uploads *kept);

#endif
