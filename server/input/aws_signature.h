/* What signing and verifying AWS Signature Version 4 have in common: the canonical request, which
 * is hashed while it is written and so has no limit, and the keys. No function keeps a secret. */
#ifndef INPUT_AWS_SIGNATURE_H
#define INPUT_AWS_SIGNATURE_H

#include <stdint.h>

#include "zt/text.h"

#define AWS_KEY_BYTES 32
/* Lower-case hex digits of a SHA-256 or of a signature, and NUL. */
#define AWS_HEX_SIZE 65
/* "20150830T123600Z" and NUL; the first digits are the day. */
#define AWS_DATE_SIZE  17
#define AWS_DAY_LENGTH 8

#define AWS_ALGORITHM  "AWS4-HMAC-SHA256"
#define AWS_TERMINATOR "aws4_request"
/* The SHA-256 of no bytes. */
#define AWS_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* A query with more parameters has no canonical form here. */
#define AWS_PARAMETERS_MAX 64
#define AWS_SECRET_MAX     256
/* Bytes of a region or a service. */
#define AWS_SCOPE_MAX 64
/* "20150830/us-east-1/s3/aws4_request" and NUL. */
#define AWS_SCOPE_SIZE (AWS_DAY_LENGTH + 2 * AWS_SCOPE_MAX + 16)

struct zt_hasher;

/* --- the canonical request, in the order of these functions --- */

struct canonical_request {
    struct zt_hasher *hash;
    size_t used;
    char bytes[256]; /* not hashed yet */
};

/* False: out of memory. Otherwise canonical_request_end must be called. */
bool canonical_request_begin(struct canonical_request *request, const char *method);

/* Adds a path as it is sent: escapes are decoded and made again, as S3 does it. '/' stays. */
void canonical_request_path(struct canonical_request *request, struct zt_text raw);

/* Adds a query, without its '?', encoded in the same way, sorted, and with '=' after each name; but
 * not the parameter without, if that is not NULL. False: there are too many parameters. */
bool canonical_request_query(struct canonical_request *request, struct zt_text raw,
                             const char *without);

/* Adds a field that is signed: its name in lower case, then each of its values, in which a run of
 * blanks counts as one, then its end. */
void canonical_request_field(struct canonical_request *request, struct zt_text name);
void canonical_request_value(struct canonical_request *request, struct zt_text value,
                             bool is_first);
void canonical_request_field_end(struct canonical_request *request);

/* Adds the names of these fields, joined by ';', and the text for the body; then writes the hash
 * and frees the memory. */
void canonical_request_end(struct canonical_request *request, struct zt_text names,
                           struct zt_text payload, char out_hex[AWS_HEX_SIZE]);

/* --- the signature --- */

struct aws_scope {
    struct zt_text day; /* AWS_DAY_LENGTH digits */
    struct zt_text region;
    struct zt_text service;
};

/* The scope as one text. No part of it may be longer than AWS_SCOPE_MAX. */
void aws_scope_write(const struct aws_scope *scope, char out_text[AWS_SCOPE_SIZE]);

/* Derives the key of a day, a region and a service. False: out of memory, or the secret is longer
 * than AWS_SECRET_MAX. */
bool aws_key_derive(struct zt_text secret, const struct aws_scope *scope,
                    uint8_t out_key[AWS_KEY_BYTES]);

/* The three lines that every signature begins with: what it signs ("AWS4-HMAC-SHA256"), when, and
 * the scope. */
struct aws_head {
    const char *algorithm;
    const char *date;  /* AWS_DATE_SIZE */
    const char *scope; /* AWS_SCOPE_SIZE */
};

/* Signs these lines and rest, at most AWS_REST_MAX bytes. False: out of memory. */
#define AWS_REST_MAX (3 * AWS_HEX_SIZE)
bool aws_sign(const uint8_t key[AWS_KEY_BYTES], const struct aws_head *head, const char *rest,
              uint8_t out_code[AWS_KEY_BYTES]);

#endif
