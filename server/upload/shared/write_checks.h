/* Checks that every write has in common: of its request, made before a byte of its body is read, in
 * the order of the contract (http-api, section 6), and of the stored file, before publication. A
 * refusal of the request returns true and has replied. */
#ifndef UPLOAD_SHARED_WRITE_CHECKS_H
#define UPLOAD_SHARED_WRITE_CHECKS_H

#include "http/exchange/request.h"
#include "http/fields/conditional.h"
#include "http/fields/digest_fields.h"
#include "upload/shared/publication.h"

bool write_refuse_read_only(struct request *request);
/* A name that is not a model's, or that no file can have. */
bool write_refuse_name(struct request *request, struct zt_text name);
/* Content-Encoding, where the body is the bytes themselves. */
bool write_refuse_coding(struct request *request);
/* Reads Content-Digest and, unless out_repr is NULL, Repr-Digest; refuses malformed ones. */
bool write_refuse_digests(struct request *request, struct digest_field *out_content,
                          struct digest_field *out_repr);
/* No body, and no length of 0 declared either. */
bool write_refuse_absent_body(struct request *request);
/* A declared length above upload.max_bytes; UINT64_MAX: not declared. */
bool write_refuse_large(struct request *request, uint64_t length);
/* The preconditions that a write can have; their texts are the request's. */
struct preconditions write_preconditions(struct request *request);
/* Reads the preconditions and compares them with what is known to stand under the name. Where that
 * would have to be found out first, publication checks them. */
bool write_refuse_preconditions(struct request *request, struct zt_text name,
                                struct preconditions *out_preconditions);
/* Memory for a request's context: cleared, and freed with the request. NULL: replied. */
void *write_context(struct request *request, size_t size);
/* The reply to a client that has as many uploads as the setting named by key allows. */
void write_reply_crowded(struct request *request, unsigned limit, const char *key);

/* --- the stored file: what validation finds out about it --- */

struct findings {
    const char *extension; /* that its format has: ".zt" and so on */
    /* So that the server need not find them out again: which file it was, and a verdict for each
     * component (NULL for a data shard). */
    bool has_identity;
    struct file_identity identity;
    unsigned char *verdicts; /* the caller's to free, after a failure too */
    uint32_t verdict_count;
};

/* Opens the file with the reader that serves it, checks the digests that it states and then the
 * rules of its content. False: failure is set. */
bool publication_check(const struct publication *publication, struct findings *out_findings,
                       struct failure *failure);

#endif
