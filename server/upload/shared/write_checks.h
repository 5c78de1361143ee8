/* Checks that all writes have in common: of the request, before a byte of its body is read, and of
 * the stored file, before publication. The write_refuse functions return true if they have replied
 * with a refusal; the order in which they are called decides which refusal a client sees. */
#ifndef UPLOAD_SHARED_WRITE_CHECKS_H
#define UPLOAD_SHARED_WRITE_CHECKS_H

#include "http/exchange/request.h"
#include "http/fields/conditional.h"
#include "http/fields/digest_fields.h"
#include "upload/shared/publication.h"

bool write_refuse_read_only(struct request *request);
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
/* The preconditions that a write can have; their texts are the request's. */
struct preconditions write_preconditions(struct request *request);
/* Reads the preconditions and compares them with the model that is known to have the name. If that
 * is not known yet, only publication checks them. A PUT that fails them is answered 204 if the file
 * that is there is known to have the digest of its Repr-Digest. */
bool write_refuse_preconditions(struct request *request, struct zt_text name,
                                struct preconditions *out_preconditions);
/* Refuses to replace a model behind which the catalog knows another, which publication would refuse
 * after the whole body. What is not known yet is left to publication. */
bool write_refuse_behind(struct request *request, struct zt_text name);
/* Refuses an If-None-Match that is malformed; NULL: there is none. */
bool write_refuse_tags(struct request *request, const char *if_none_match);
/* The SHA-256 of a model's own file, if it is known; otherwise it is found in the background, for
 * the next attempt. */
bool write_file_sha256(struct server *server, const struct generation *generation,
                       uint8_t out_sha256[32]);
/* Whether the request's Repr-Digest is that of the file that is there: the request, or one like it,
 * was successful before, and its answer was lost (RFC 9110 section 13.2.1). */
bool write_is_done_already(struct request *request, const uint8_t sha256[32]);
/* Memory for a request's context: cleared, and freed with the request. NULL: replied. */
void *write_context(struct request *request, size_t size);
/* The reply to a client that has as many uploads as the setting named by key allows. */
void write_reply_crowded(struct request *request, unsigned limit, const char *key);

/* --- the stored file: the results of validation --- */

struct findings {
    const char *extension; /* of its format: ".zt" and so on */
    /* Kept so that the server need not verify the file again: its identity, and a verdict for each
     * component (NULL for a data shard). */
    bool has_identity;
    struct file_identity identity;
    unsigned char *verdicts; /* freed by the caller, even after a failure */
    uint32_t verdict_count;
};

/* Opens the file with the reader that serves it, checks whether the client may use the files of its
 * shards, the digests that it states, and then the rules of its content. False: failure is set. */
bool publication_check(const struct publication *publication, struct findings *out_findings,
                       struct failure *failure);

#endif
