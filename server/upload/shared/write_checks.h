/* Checks that all writes share, before a byte of the body is read. The write_refuse functions
 * return true if they have replied with a refusal; the order in which they are called decides which
 * refusal a client sees. */
#ifndef UPLOAD_SHARED_WRITE_CHECKS_H
#define UPLOAD_SHARED_WRITE_CHECKS_H

#include "http/exchange/request.h"
#include "http/fields/conditional.h"
#include "http/fields/digest_fields.h"
#include "upload/shared/published.h"

bool write_refuse_read_only(struct request *request);
/* Refuses a path, or a folder, that belongs to a mirrored repository. The names of models and the
 * paths of files are checked by the functions below. */
bool write_refuse_mirrored(struct request *request, struct zt_text path);
/* Refuses a Content-Encoding; for requests whose body is the bytes themselves. */
bool write_refuse_coding(struct request *request);
/* Reads Content-Digest and, unless out_repr is NULL, Repr-Digest; refuses malformed ones. */
bool write_refuse_digests(struct request *request, struct digest_field *out_content,
                          struct digest_field *out_repr);
/* Refuses a request with neither a body nor a declared length of 0. */
bool write_refuse_absent_body(struct request *request);
/* Refuses a declared length above upload.max_bytes; UINT64_MAX: not declared. */
bool write_refuse_large(struct request *request, uint64_t length);
/* Refuses a length for which the store has no space. */
bool write_refuse_full(struct request *request, uint64_t length);
/* Returns the preconditions that a write can have. The texts belong to the request. */
struct preconditions write_preconditions(struct request *request);
/* Reads the preconditions and checks them against the model that is known to have the name. If none
 * is known yet, only publication checks them. If they fail for a PUT, but the current file has the
 * digest in the request's Repr-Digest, replies with 204. */
bool write_refuse_preconditions(struct request *request, struct zt_text name,
                                struct preconditions *out_preconditions);
/* Refuses to replace a model if the catalog knows another one hidden behind it; publication would
 * refuse that after the whole body. If the catalog does not know yet, publication decides. */
bool write_refuse_shadowed(struct request *request, struct zt_text name);
/* Refuses a malformed If-None-Match; NULL: there is none. */
bool write_refuse_tags(struct request *request, const char *if_none_match);
/* Returns the SHA-256 of a model's own file if it is known. Otherwise it is computed in the
 * background, for the next attempt. */
bool write_file_sha256(struct server *server, const struct generation *generation,
                       uint8_t out_sha256[32]);
/* Replies to a client that already has as many uploads as the setting named by key allows. */
void write_reply_crowded(struct request *request, unsigned limit, const char *key);

/* --- files at paths --- */

/* Returns true if a file of that path may be written. */
bool file_path_is_writable(struct zt_text path);
/* Refuses a path at which no file is served, or that the client may not use. */
bool write_refuse_file_path(struct request *request, struct zt_text path);
/* Reads the preconditions and checks them against the current file. If the store is remote, only
 * publication checks them. If they fail for a PUT, but the file is known to have the digest in the
 * request's Repr-Digest, replies with 204. path ends with NUL. */
bool write_refuse_file_preconditions(struct request *request, const char *path,
                                     struct preconditions *out_preconditions);

/* --- the names of models ---
 *
 * Names for uploads follow stricter rules than names that are only read, and have no extension. The
 * server adds the extension of the format that it finds, so "new.npy" would become the file
 * "new.npy.npy". */

/* Refuses a name that is not a model's, that no file can have, or that ends with a known extension
 * in upper or lower case; the problem then contains the right URL. Returns true if it has replied.
 *
 * may_be_shard: the body may be a shard of zTensor 2, whose name depends on its model: only
 * written_name_is_doubled can judge "model-shard.zt". */
bool written_name_refuse(struct request *request, struct zt_text name, bool may_be_shard);

/* Returns true, with failure set, if the name already ends with the extension of the model's
 * format, and would get it twice. */
bool written_name_is_doubled(const char *name, const char *extension, struct failure *failure);

#endif
