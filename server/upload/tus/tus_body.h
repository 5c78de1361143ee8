/* A body of a resumable upload, sent by PATCH or at creation: checked, written, made durable and,
 * if it completes the file, published. Also parts of answers and refusals that the tus requests
 * share. */
#ifndef UPLOAD_TUS_TUS_BODY_H
#define UPLOAD_TUS_TUS_BODY_H

#include "http/exchange/router.h"
#include "upload/tus/resumable.h"

struct tus_body {
    struct server *server;
    struct resumable *resumable; /* held */
    uint64_t claim;              /* 0: none, or ended */
    bool is_creation;            /* without its answer no client knows the upload */
    bool is_finished;            /* tus_body_finish has run */
    uint64_t begin;              /* offset of the body's first byte */
    uint64_t stated_length;      /* Upload-Length of a PATCH; RESUMABLE_UNKNOWN: none */
    uint64_t most;               /* where the upload ends at the latest */
    /* Of the body, and stored. Those who hash look at it while another worker stores. */
    atomic_uint_fast64_t received;
    uint64_t offset; /* durable bytes of the upload, once it is finished */
    /* A body with a stated digest first goes to a file of its own, so that nothing of it stays if
     * the digest is wrong. */
    bool has_checksum;
    struct zt_digest checksum;
    struct digest_field content_digest;
    /* With PATCH also that of the piece: RFC 9530 regards the patch as the representation. */
    struct digest_field repr_digest;
    struct stored_upload *chunk;
    struct failure failure;
    struct job job; /* removal after the request */
};

/* A new body, held by the request. NULL, and replied, if out of memory. */
struct tus_body *tus_body_new(struct request *request);

/* Reads Content-Type, Upload-Checksum and the like. True: replied with a refusal. */
bool tus_body_refuse_fields(struct request *request, struct tus_body *body);
/* Begins to use the upload, which the caller has claimed and held for the body, and gives it the
 * length that the request states. True: replied with a refusal. */
bool tus_body_refuse_start(struct request *request, struct tus_body *body);

/* After a failure the rest of the body is discarded. */
void tus_body_receive(struct tus_body *body, const void *bytes, size_t length);

/* The same on workers (struct operation). */
void tus_body_store(struct tus_body *body, const struct body_piece *piece);
void tus_body_digest(struct tus_body *body, const struct body_piece *piece);

/* The handlers' work on a worker, when the body is complete. Failure may be set afterwards. The
 * claim ends here, before the answer, since the client may then send the next request. */
void tus_body_work(struct request *request);

/* Fields of an answer: Upload-Offset, Upload-Expires, and for a model ETag and Repr-Digest. */
void tus_reply_progress(struct request *request, struct resumable *resumable, uint64_t offset);
void tus_reply_published(struct request *request, const struct resumable *resumable);
/* The whole answer to a creation (tus_create.c). */
void tus_reply_created(struct request *request, struct resumable *resumable, uint64_t offset);

/* Whether the client of a request may see an upload: by its model's name; a part, which has none,
 * if it created it itself, or may see all models. */
bool tus_sees(const struct request *request, const struct resumable *resumable);
/* The reply where another request has the claim. */
enum outcome tus_reply_busy(struct request *request);

/* Refuses a missing or different protocol version. True: replied. */
bool tus_refuse_version(struct request *request);

#endif
