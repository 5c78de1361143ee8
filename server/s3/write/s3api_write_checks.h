/* Shared by all writes of the S3 API: checks before a byte of the body is read, and the fields that
 * are kept afterwards. The functions named refuse return true if they have replied. */
#ifndef S3_WRITE_S3API_WRITE_CHECKS_H
#define S3_WRITE_S3API_WRITE_CHECKS_H

#include "http/exchange/request.h"
#include "http/fields/conditional.h"
#include "upload/shared/published.h"

/* Finds the key of a write, and refuses it on a read-only server, and if the client may not use the
 * key. *out_is_folder: the key ends with "/", and *out_key lacks that slash; NULL: such keys are
 * refused. */
bool s3api_refuse_key(struct request *request, struct zt_text *out_key, bool *out_is_folder);

/* Refuses fields that ask for what this server does not do, such as encryption with the client's
 * key, so that no client believes that it was done. */
bool s3api_refuse_unsupported(struct request *request);

/* Reads the preconditions of a write, with tags of this API. */
struct preconditions s3api_preconditions(struct request *request);

/* Checks them against the current file. If the store is remote, only publication checks them. path
 * ends with NUL. */
bool s3api_refuse_preconditions(struct request *request, const char *path,
                                const struct preconditions *preconditions);

/* Changes a failed If-Match of a publication to PROBLEM_NOT_FOUND if there is no object, as S3
 * does. On a worker. */
void s3api_explain_absence(struct server *server, const char *path,
                           const struct preconditions *preconditions, struct failure *failure);

/* Keeps the fields of an object that was published (s3api_meta.h; NULL: none). On a worker. */
void s3api_keep_fields(struct server *server, const char *path, const struct published *published,
                       const char *fields);

#endif
