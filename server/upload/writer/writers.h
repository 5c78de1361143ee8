/* All uploads of the streaming writer that this server has, by id. Safe from any thread. */
#ifndef UPLOAD_WRITER_WRITERS_H
#define UPLOAD_WRITER_WRITERS_H

#include "upload/writer/writer_session.h"

/* NULL when memory is out. */
struct writers *writers_new(struct server *server);
/* What is kept on disk stays. Takes NULL. */
void writers_free(struct writers *writers);

/* Held; NULL when there is none, or it was dropped. */
struct writer_session *writers_find(struct writers *writers, struct zt_text id);

/* Takes the caller's reference over and registers it. False, and nothing happened, when the client
 * has too many. */
bool writers_add(struct writers *writers, struct writer_session *session);

/* Takes it out of the table and removes its place, with all that is in it. The caller has ended its
 * round with WRITER_DROPPED. On a worker. */
void writers_drop(struct writers *writers, struct writer_session *session);

/* At start: whether the kept place of that id is a writer's, and has been taken over. */
bool writers_restore(struct writers *writers, const char *id);

/* Removes what was idle for too long, and what was committed long enough ago. On a worker. */
void writers_expire(struct writers *writers);

/* When an upload expires if nobody touches it. */
time_t writer_session_expires(struct writer_session *session);

#endif
