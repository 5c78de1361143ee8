/* A body of a resumable upload, sent by PATCH or at creation: checked, written, made durable and,
 * if it completes the file, published. Also has parts of responses and refusals that the tus
 * requests share. */
#ifndef UPLOAD_TUS_TUS_BODY_H
#define UPLOAD_TUS_TUS_BODY_H

#include "http/exchange/router.h"
#include "upload/tus/resumable.h"

struct tus_body {
    struct server *server;
    struct resumable *resumable; /* held */
    uint64_t claim;              /* 0: none, or ended */
    bool is_creation;            /* without the response, no client knows the upload */
    bool is_finished;            /* tus_body_finish has run */
    uint64_t begin;              /* offset of the body's first byte */
    uint64_t stated_length;      /* Upload-Length of a PATCH; RESUMABLE_UNKNOWN: none */
    uint64_t most;               /* maximum total length of the upload */
    uint64_t received;           /* stored bytes of the body */
    uint64_t offset;             /* durable bytes of the upload, once it is finished */
    /* A body with a stated digest first goes to a separate file, so that it can be dropped
     * completely if the digest is wrong. */
    bool has_checksum;
    struct zt_digest checksum;
    struct digest_field content_digest;
    /* With PATCH, this may also be the digest of the piece: RFC 9530 regards the patch as the
     * representation. */
    struct digest_field repr_digest;
    struct staged_file *chunk;
    bool has_entered; /* the upload's files */
    struct failure failure;
    struct job job; /* removal after the request */
};

/* Makes a new body, held and received by the request. Returns NULL, having replied, if out of
 * memory. */
struct tus_body *tus_body_new(struct request *request);

/* Reads Content-Type, Upload-Checksum and similar fields. Returns true if it has refused the
 * request. */
bool tus_body_refuse_fields(struct request *request, struct tus_body *body);
/* Begins to use the upload, which the caller has claimed and held for the body, and sets the length
 * stated by the request. Returns true if it has refused the request. */
bool tus_body_refuse_start(struct request *request, struct tus_body *body);

/* Finishes a complete body, on a worker. Failure may be set afterwards. The claim ends here, before
 * the response, since the client may then send the next request. */
void tus_body_work(struct request *request);

/* Adds fields to the response: Upload-Offset and Upload-Expires; for a model, ETag and
 * Repr-Digest. */
void tus_reply_progress(struct request *request, struct resumable *resumable, uint64_t offset);
void tus_reply_published(struct request *request, const struct resumable *resumable);
/* Writes the whole response to a creation (tus_create.c). */
void tus_reply_created(struct request *request, struct resumable *resumable, uint64_t offset);

/* Returns true if the client may see an upload. That depends on its model's name. A part has none:
 * a client sees it if it created it, or may see all models. */
bool tus_sees(const struct request *request, const struct resumable *resumable);
/* Replies that another request has the claim. */
enum outcome tus_reply_busy(struct request *request);
/* Replies that the upload's folder cannot be read; the upload may exist. */
void tus_reply_unreadable(struct request *request);

/* Refuses a missing or different protocol version. Returns true if it has replied. */
bool tus_refuse_version(struct request *request);

#endif
