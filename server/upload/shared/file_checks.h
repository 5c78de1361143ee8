/* Checks of requests that write a file at a path of its own, before a byte of the body is read; as
 * those of write_checks.h. */
#ifndef UPLOAD_SHARED_FILE_CHECKS_H
#define UPLOAD_SHARED_FILE_CHECKS_H

#include "upload/shared/file_publication.h"

/* Refuses a path that no file is served at, or that the client may not use. */
bool write_refuse_file_path(struct request *request, struct zt_text path);
/* Reads the preconditions and compares them with the file that is there, unless it lies elsewhere:
 * then only publication does. A PUT that fails them is answered 204 if the file is known to have
 * the digest of its Repr-Digest. path ends with NUL. */
bool write_refuse_file_preconditions(struct request *request, const char *path,
                                     struct preconditions *out_preconditions);

/* Where the file is, as a field of the answer. */
void published_reply_file(struct request *request, struct zt_text path);

#endif
