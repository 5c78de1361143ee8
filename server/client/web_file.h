/* A file on a server: one version of it, told by its first answer, and requests for parts of that
 * version and no other (RFC 9110 sections 13 and 14). */
#ifndef CLIENT_WEB_FILE_H
#define CLIENT_WEB_FILE_H

#include "client/client.h"

struct web_file {
    struct client_place place; /* after redirects */
    uint64_t size;             /* UINT64_MAX: not told */
    bool has_ranges;           /* parts can be asked for, and only of this version */
    char etag[256];            /* strong; empty: none */
    char last_modified[64];    /* set where it is as good as a strong tag; empty: none */
    bool has_time;
    int64_t modified_s; /* Last-Modified, since 1970 */
    bool has_sha256;
    uint8_t sha256[32]; /* of the whole, as the server states it (RFC 9530) */
};

/* Asks for the first byte. Fails as client_ask and client_refusal do. */
enum zt_status web_file_open(struct client *client, const struct client_place *place,
                             struct web_file *out_file, struct zt_error *error);

/* Asks for the digest of the whole, unless it is known; the server may have to compute it. Fills in
 * sha256 if it is told. False: the server's version is another by now. */
bool web_file_ask_digest(struct client *client, struct web_file *file);

/* Sets an exchange up for a range (ends inclusive) of this version; without ranges, for the whole.
 * The caller sets the target of the body, done and context. */
void web_file_prepare(struct client *client, const struct web_file *file, uint64_t first,
                      uint64_t last, struct remote_exchange *exchange);

/* Whether an answer is of this version, as far as its header tells; for accept. */
bool web_file_is_same(const struct web_file *file, const struct remote_head *head);

/* After an exchange that has ended without being a part of this version: why. ZT_STALE: it is
 * another version by now; ZT_UNAVAILABLE: another try may help; else as client_refusal. */
enum zt_status web_file_failure(const struct web_file *file, const struct remote_exchange *exchange,
                                struct zt_error *error);

#endif
