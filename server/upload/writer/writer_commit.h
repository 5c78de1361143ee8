/* From an upload's contents to a published model. */
#ifndef UPLOAD_WRITER_WRITER_COMMIT_H
#define UPLOAD_WRITER_WRITER_COMMIT_H

#include "upload/writer/writer_session.h"

/* On a worker. What the request that commits asks for itself is checked as well as what the upload
 * began with. False: failure is filled, and the upload is as it was. Committed before: true at
 * once. */
bool writer_commit(struct writer_session *session, const struct preconditions *preconditions,
                   struct writer_failure *failure);

#endif
