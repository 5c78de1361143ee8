/* One version of a file on a server, as described by its first response, and requests for ranges of
 * only that version (RFC 9110 sections 13 and 14). */
#ifndef CLIENT_WEB_FILE_H
#define CLIENT_WEB_FILE_H

#include "client/client.h"

struct web_file {
    struct client_place place; /* after redirects */
    uint64_t size;             /* UINT64_MAX: unknown */
    bool has_ranges;           /* ranges can be requested, of only this version */
    char etag[256];            /* strong; empty: none */
    char last_modified[64];    /* set if it is as good as a strong tag; empty: none */
    bool has_time;
    int64_t modified_s; /* Last-Modified, since 1970 */
    bool has_sha256;
    uint8_t sha256[32]; /* of the whole file, as stated by the server (RFC 9530) */
    /* The set of axis rules that the server suggests for an export (docs/api.md); empty: none. */
    char axis_suggestion[32];
};

/* Requests the first byte. Fails as client_ask and client_refusal do. */
enum zt_status web_file_open(struct client *client, const struct client_place *place,
                             struct web_file *out_file, struct zt_error *error);

/* Requests the digest of the whole file, unless it is known; the server may have to compute it.
 * Sets sha256 if the server returns one. Returns false if the server has another version now. */
bool web_file_ask_digest(struct client *client, struct web_file *file);

/* Returns true if the local file has the server's bytes, according to the server's digest, which it
 * requests. */
bool web_file_is_at(struct client *client, struct web_file *file, const char *path);

/* Sets an exchange up for a range (ends inclusive) of this version; without ranges, for the whole.
 * The caller sets the target of the body, done and context. */
void web_file_prepare(struct client *client, const struct web_file *file, uint64_t first,
                      uint64_t last, struct remote_exchange *exchange);

/* Returns true if a response is for this version, according to its header; for accept. */
bool web_file_is_same(const struct web_file *file, const struct remote_head *head);

/* Explains why an exchange did not return a range of this version. ZT_STALE: the server has another
 * version now; ZT_UNAVAILABLE: a retry may help; otherwise as client_refusal. */
enum zt_status web_file_failure(const struct web_file *file, const struct remote_exchange *exchange,
                                struct zt_error *error);

#endif
