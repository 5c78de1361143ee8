/* What answers of an upstream mean. Pure functions. */
#ifndef UPSTREAM_JUDGE_H
#define UPSTREAM_JUDGE_H

#include "upstream/upstream.h"

struct remote_head;
struct remote_exchange;

struct judge_case {
    unsigned status;
    const char *error_code; /* X-Error-Code; empty: none */
    bool has_token;
    bool is_file; /* a file of a commit was asked for, not a repository */
};

/* Judges a status that is neither 2xx nor 3xx. ZT_NOT_FOUND, ZT_STALE, or ZT_UNAVAILABLE with a
 * rule; a denial (401, 403) holds for LOOKUPS_REMEMBERED_MS, which is the error's pause. */
enum zt_status judge_status(const struct judge_case *judged, struct zt_error *error);

/* Judges an exchange without an answer of use. ZT_UNAVAILABLE. */
enum zt_status judge_failure(const struct remote_exchange *exchange, struct zt_error *error);

/* Returns true if a header agrees with the file's commit, size and digest. False: it is another
 * file. is_own: it comes from the upstream itself, whose ETag is the digest. */
bool judge_is_same_file(const struct upstream_place *place, const struct remote_head *head,
                        bool is_own);

/* Whether an ETag is a digest of the same kind, but another one. */
bool judge_etag_differs(const char *etag, enum upstream_digest kind, const uint8_t digest[32]);

/* Reads the SHA-256 of a Repr-Digest (RFC 9530) with one member. Returns false for any other. */
bool judge_read_digest(const char *repr_digest, uint8_t out_sha256[32]);

#endif
