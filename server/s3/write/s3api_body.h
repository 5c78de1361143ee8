/* The body of a write to S3: decodes aws-chunked, and verifies everything that the request states
 * about its body: x-amz-content-sha256, Content-MD5, x-amz-checksum-*, by header or trailer,
 * x-amz-decoded-content-length, and the signature of each chunk.
 *
 * It is in front of the receiver that stores the bytes:
 *
 *     s3api_body_begin      before the body; refuses what the header gets wrong
 *     s3api_body_receive    for each piece, by the owner's body_receiver; passes on decoded bytes
 *     s3api_body_hash       for all decoded bytes, in order, on any thread, while they arrive
 *     s3api_body_finish     after the last byte, before the bytes may count
 *     s3api_body_reply_failure or s3api_body_reply_checksums
 *     s3api_body_free */
#ifndef S3_WRITE_S3API_BODY_H
#define S3_WRITE_S3API_BODY_H

#include "http/exchange/request.h"
#include "http/exchange/s3api_error.h"
#include "http/fields/checksums.h"
#include "http/fields/sigv4.h"

struct s3api_coding;

struct s3api_body {
    /* The number of decoded bytes; UINT64_MAX if it is not known before the end. Constant after
     * s3api_body_begin. */
    uint64_t length;
    /* The first mistake: BadDigest, XAmzContentSHA256Mismatch, IncompleteBody,
     * SignatureDoesNotMatch, InvalidRequest. */
    bool has_failed;
    enum s3api_error error;
    char why[96]; /* the message */
    /* The checksums that the client has stated, in the header or in a trailer; right after
     * s3api_body_finish. */
    bool is_stated[CHECKSUMS];
    struct zt_digest values[CHECKSUMS];
    /* Set by the owner before s3api_body_begin: a checksum in the header may be a composite one,
     * which says of how many parts it is. */
    bool may_have_composites;
    uint32_t part_counts[CHECKSUMS]; /* 0: not composite */

    /* Private. */
    const struct body_receiver *inner;
    uint64_t received;               /* decoded bytes so far */
    const struct sigv4_body *stated; /* the request's */
    bool owner_has_sha256;
    struct s3api_coding *coding; /* NULL: the body is the bytes themselves */
    struct checksums checksums;
    bool is_announced[CHECKSUMS]; /* by x-amz-trailer */
};

/* Reads the header. inner gets the decoded bytes: its offsets count these, and it may be called
 * several times for one piece. owner_has_sha256: the owner computes the SHA-256 of all decoded
 * bytes, and passes it to s3api_body_finish. body is zeroed before. Returns false if it has replied
 * with a refusal; call s3api_body_free in any case. */
bool s3api_body_begin(struct s3api_body *body, struct request *request,
                      const struct body_receiver *inner, bool owner_has_sha256);

/* Decodes a piece. Returns false once the body has a mistake: inner gets nothing any more, and the
 * owner may free what is stored. */
bool s3api_body_receive(struct s3api_body *body, struct request *request,
                        const struct body_piece *piece);

/* Computes the checksums that the request wants. Never concurrently with itself, but may run
 * concurrently with s3api_body_receive. */
void s3api_body_hash(struct s3api_body *body, const void *bytes, size_t length);
/* Returns true if s3api_body_hash has something to compute. */
bool s3api_body_wants_hash(const struct s3api_body *body);

/* Compares everything that was stated. sha256: of all bytes, if the owner computes it, else NULL.
 * Call it once, also for an empty body. Returns false if the body has a mistake. */
bool s3api_body_finish(struct s3api_body *body, const uint8_t sha256[32]);

/* Replies with the mistake. Returns OUTCOME_READY. */
enum outcome s3api_body_reply_failure(struct request *request, const struct s3api_body *body);
/* Adds the checksums that the request stated to a reply, as S3 does. After a finish without
 * mistake. Returns false if it stated none. */
bool s3api_body_reply_checksums(struct request *request, const struct s3api_body *body);
/* Adds the SHA-256 of a whole object. */
void s3api_reply_sha256(struct request *request, const uint8_t sha256[32]);

/* May be called twice. */
void s3api_body_free(struct s3api_body *body);

/* --- a body that is kept in memory (json_body.h) --- */

/* The first member of the request's context. */
struct s3api_document {
    struct s3api_body body;
    const struct body_receiver *inner; /* private */
};

/* Begins to receive the document, after json_body_refuse. Returns false if it has replied; call
 * s3api_body_free in any case. */
bool s3api_document_begin(struct request *request);
/* Verifies the document, which json_body_text then returns. Returns false if it has replied. */
bool s3api_document_finish(struct request *request);

#endif
