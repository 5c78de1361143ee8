/* Turns an upload's contents into a published model. */
#ifndef UPLOAD_WRITER_WRITER_COMMIT_H
#define UPLOAD_WRITER_WRITER_COMMIT_H

#include "upload/writer/writer_session.h"

/* Commits a session that the caller has made COMMITTING; afterwards it is COMMITTED or open again.
 * Checks the preconditions of the committing request and of the request that began the upload.
 * request is the client's. Returns false with failure set: the upload is
 * unchanged, unless it is COMMITTED and its publication is unfinished. On a worker. */
bool writer_commit(struct writer_session *session, const struct preconditions *preconditions,
                   const struct request *request, struct failure *failure);

/* Retries the unfinished work of a committed session's publication. Sets failure if some work is
 * still unfinished. On a worker. */
void writer_commit_complete(struct writer_session *session, struct failure *failure);

#endif
