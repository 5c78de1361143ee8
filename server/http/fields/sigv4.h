/* AWS Signature Version 4 as S3's clients send it, in the Authorization field or in the query
 * (presigned): which key signed a request, when, and whether the signature is right. And what the
 * signed field x-amz-content-sha256 says about the body. Pure functions over the header. */
#ifndef HTTP_FIELDS_SIGV4_H
#define HTTP_FIELDS_SIGV4_H

#include "http/fields/header_field.h"
#include "input/aws_signature.h"

/* Bytes of an access key. */
#define SIGV4_KEY_MAX 128
/* How far the clock of a client may be off. */
#define SIGV4_SKEW_S (15 * 60)
/* Seconds for which a presigned address may be valid: seven days. */
#define SIGV4_EXPIRES_MAX 604800

/* A request's header, as received. */
struct sigv4_request {
    const char *method;
    const char *target;
    const struct header_field *fields;
    unsigned field_count;
};

/* --- what signs a request --- */

enum sigv4_form {
    SIGV4_ABSENT,    /* no signature of this version: anonymous, or other credentials */
    SIGV4_MALFORMED, /* it has one, but it cannot be read, or covers too little */
    SIGV4_HEADER,
    SIGV4_QUERY
};

/* The texts point into the request's header, or into decoded. */
struct sigv4 {
    enum sigv4_form form;
    struct zt_text access_key;
    struct aws_scope scope;
    struct zt_text signed_names; /* joined by ';', in lower case */
    char date[AWS_DATE_SIZE];
    int64_t date_s;
    int64_t expires_s; /* SIGV4_QUERY: so long after date_s */
    uint8_t signature[AWS_KEY_BYTES];
    struct zt_text payload; /* signed in place of the body */
    char decoded[2048];
};

/* Reads the signature of a request, without checking it. why is set, to a text that lives for ever,
 * if the result is SIGV4_MALFORMED. */
enum sigv4_form sigv4_read(const struct sigv4_request *request, struct sigv4 *out_signature,
                           const char **out_why);

/* The x-amz- field that a request has but does not sign, which no client may add: NULL if there is
 * none. */
const struct header_field *sigv4_unsigned_field(const struct sigv4 *signature,
                                                const struct sigv4_request *request);

enum sigv4_time {
    SIGV4_TIMELY,
    SIGV4_SKEWED,  /* the clocks of client and server differ too much */
    SIGV4_EARLY,   /* a presigned address is not valid yet */
    SIGV4_EXPIRED, /* nor any more */
};

enum sigv4_time sigv4_check_time(const struct sigv4 *signature, int64_t now_s);

/* Returns true if key, derived for signature->scope, made the signature. The time does not depend
 * on how much of the signature is right. */
bool sigv4_verify(const struct sigv4 *signature, const struct sigv4_request *request,
                  const uint8_t key[AWS_KEY_BYTES]);

/* --- the body --- */

enum sigv4_payload {
    SIGV4_PAYLOAD_UNSTATED,         /* no x-amz-content-sha256 */
    SIGV4_PAYLOAD_SHA256,           /* of the whole body */
    SIGV4_PAYLOAD_UNSIGNED,         /* UNSIGNED-PAYLOAD */
    SIGV4_PAYLOAD_UNSIGNED_TRAILER, /* aws-chunked, with a checksum in the trailer */
    SIGV4_PAYLOAD_CHUNKS,           /* aws-chunked, each chunk signed */
    SIGV4_PAYLOAD_CHUNKS_TRAILER,   /* the same, and a signed trailer */
    SIGV4_PAYLOAD_UNKNOWN           /* any other text */
};

/* What the body of a request must be. If its signature was checked and its chunks are signed, also
 * what the signature of the first chunk continues. */
struct sigv4_body {
    enum sigv4_payload payload;
    uint8_t sha256[32];         /* SIGV4_PAYLOAD_SHA256 */
    bool is_verified;           /* the members below are set: chunks must be checked */
    uint8_t key[AWS_KEY_BYTES]; /* a secret: wipe it */
    char seed[AWS_HEX_SIZE];    /* the signature of the request */
    char date[AWS_DATE_SIZE];
    char scope[AWS_SCOPE_SIZE];
};

/* Sets payload and sha256. */
void sigv4_payload_read(struct zt_text text, struct sigv4_body *out_body);

/* Sets the other members, from a signature that sigv4_verify has accepted. */
void sigv4_body_seed(const struct sigv4 *signature, const uint8_t key[AWS_KEY_BYTES],
                     struct sigv4_body *body);

/* Computes the signature of a chunk, or of the trailer, from the signature before it (in the first
 * chunk body->seed) and the SHA-256 of the chunk's data, or of the trailer's lines, each ended by a
 * LF. False: out of memory. */
bool sigv4_sign_chunk(const struct sigv4_body *body, const char previous[AWS_HEX_SIZE],
                      const uint8_t sha256[32], char out_hex[AWS_HEX_SIZE]);
bool sigv4_sign_trailer(const struct sigv4_body *body, const char previous[AWS_HEX_SIZE],
                        const uint8_t sha256[32], char out_hex[AWS_HEX_SIZE]);

/* Returns true if a stated signature, in hex digits, is this one; in constant time. */
bool sigv4_is_signature(struct zt_text stated, const char expected[AWS_HEX_SIZE]);

#endif
