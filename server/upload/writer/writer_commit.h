/* From an upload's contents to a published model. */
#ifndef UPLOAD_WRITER_WRITER_COMMIT_H
#define UPLOAD_WRITER_WRITER_COMMIT_H

#include "upload/writer/writer_session.h"

/* Commits a session that the caller has made COMMITTING; it is COMMITTED or open again afterwards.
 * Checks the preconditions of the committing request and those that the upload began with. covers
 * passes the names that the client may use. False with failure set: the upload is as it was. On a
 * worker. */
bool writer_commit(struct writer_session *session, const struct preconditions *preconditions,
                   struct name_filter covers, struct failure *failure);

#endif
