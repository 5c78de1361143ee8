/* A body on its way into a resumable upload, by PATCH or with its creation: checked, written, made
 * durable, and if it was the last one, published. Also what answers and refusals of the tus
 * requests share. */
#ifndef UPLOAD_TUS_TUS_BODY_H
#define UPLOAD_TUS_TUS_BODY_H

#include "http/exchange/request.h"
#include "upload/tus/resumable.h"

struct tus_body {
    struct server *server;
    struct resumable *resumable; /* held */
    uint64_t claim;              /* 0: none, or ended */
    bool is_creation;            /* without its answer no client knows the upload */
    bool is_finished;            /* tus_body_finish has run */
    uint64_t begin;              /* offset of the body's first byte */
    uint64_t received;           /* of the body */
    uint64_t offset;             /* durable bytes of the upload, once it is finished */
    /* A body whose digest is stated goes to a file of its own first, so that nothing of it stays if
     * it is wrong. */
    bool has_checksum;
    struct zt_digest checksum;
    struct digest_field content_digest;
    /* By PATCH that of the piece, too: RFC 9530 regards the patch as the representation. */
    struct digest_field repr_digest;
    struct stored_upload *chunk;
    struct failure failure;
    struct job job; /* removal after the request */
};

/* One for the request, which holds it. NULL, and replied, when memory is out. */
struct tus_body *tus_body_new(struct request *request);

/* Reads Content-Type, Upload-Checksum and the like; true when it replied with a refusal. */
bool tus_body_refuse_fields(struct request *request, struct tus_body *body);
/* Starts on the upload, which the caller has claimed and held for the body; true when it replied
 * with a refusal. */
bool tus_body_refuse_start(struct request *request, struct tus_body *body);

/* A failure stays, and the rest of the body is thrown away. */
void tus_body_receive(struct tus_body *body, const void *bytes, size_t length);

/* The body is whole: the handlers' work, on a worker. Failure may be set afterwards. The claim ends
 * here, before the answer, after which the client may send the next request. */
void tus_body_work(struct request *request);

/* Fields of an answer: Upload-Offset, Upload-Expires, and for a model ETag and Repr-Digest. */
void tus_reply_progress(struct request *request, struct resumable *resumable, uint64_t offset);
void tus_reply_published(struct request *request, const struct resumable *resumable);

/* Another version than ours, or none: true when it replied. */
bool tus_refuse_version(struct request *request);

#endif
