/* A body on its way into a resumable upload, by PATCH or with its creation: checked, written, made
 * durable, and when it was the last one, published. */
#ifndef UPLOAD_TUS_TUS_BODY_H
#define UPLOAD_TUS_TUS_BODY_H

#include "http/exchange/request.h"
#include "http/fields/digest_fields.h"
#include "upload/tus/resumable.h"

struct tus_body {
    struct server *server;
    struct resumable *resumable; /* held */
    uint64_t claim;              /* 0: none, or ended */
    bool is_creation;            /* without its answer nobody knows of the upload */
    bool is_answerable;          /* finish has run */
    uint64_t begin;              /* offset of the body's first byte */
    uint64_t received;           /* of the body */
    uint64_t offset;             /* of the upload when finish has run: durable */
    /* A body whose digest is stated goes to a file of its own first, so that nothing of it stays
     * when it is wrong. */
    bool has_checksum;
    struct zt_digest checksum;
    struct digest_field content_digest;
    struct digest_field
        repr_digest; /* of the piece too, by PATCH: RFC 9530 takes a patch for what is sent */
    struct stored_upload *chunk;
    bool has_failed;
    struct resumable_failure failure;
    struct job job; /* removal, behind the request's back */
};

/* One of the request, which holds it. NULL, and replied, when memory is out. */
struct tus_body *tus_body_new(struct request *request);

/* Reads Content-Type, Upload-Checksum and the like; true when it replied with a refusal. */
bool tus_body_refuse_fields(struct request *request, struct tus_body *body);
/* The body goes into the upload, which the caller has claimed and held for it; true when it replied
 * with a refusal. */
bool tus_body_refuse_start(struct request *request, struct tus_body *body);

void tus_body_receive(struct tus_body *body, const void *bytes, size_t length);

/* The body is whole. On a worker. False: failure is set. The claim ends here: the next request may
 * come before this one is told of its answer's end. */
bool tus_body_finish(struct tus_body *body);

/* The reply's fields for an upload as it stands: Upload-Offset, Upload-Expires; published: ETag,
 * Repr-Digest. */
void tus_reply_progress(struct request *request, struct resumable *resumable, uint64_t offset);
void tus_reply_published(struct request *request, struct resumable *resumable);

/* Another version than ours, or none: true when it replied. */
bool tus_refuse_version(struct request *request);

#endif
