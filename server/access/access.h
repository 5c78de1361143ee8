/* Who may do what: one version of everything about access that SIGHUP can change.
 *
 * A version is loaded whole or not at all and never changes afterwards. Whoever uses it holds it;
 * the requests of a loop hold it through the loop's lease (lease.h). A request sees the version
 * under which it began as request->access, to its end. */
#ifndef ACCESS_ACCESS_H
#define ACCESS_ACCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/grants.h"
#include "access/proxies.h"
#include "access/s3_keys.h"
#include "config/config.h"
#include "http/fields/authorization.h"
#include "http/fields/origin.h"

struct access {
    atomic_uint holders;
    bool needs_client;     /* clients must say who they are: there are tokens or certificates */
    bool has_certificates; /* a certificate may say so */
    bool metrics_public;
    struct origin_rules pages;
    struct grants *grants; /* NULL: no tokens file; whoever has a certificate may read and write */
    struct s3_keys *s3_keys; /* NULL: no keys file; they only concern the S3 API */
    struct jwks *keys;       /* NULL: no JSON Web Tokens; else the rest is set */
    char *issuer;
    char *audience;
    int64_t skew_s;
    struct proxies proxies;
};

/* Everybody may do everything: for requests without a server (tests). Must not be held. */
extern const struct access access_unrestricted;

/* Loads what the configuration says about access and the files that it names. The caller holds the
 * result. NULL with one line in error that names the key and, if a file is wrong, the file and the
 * line. */
struct access *access_load(const struct config *config, char *error, size_t error_size);

/* Logs what a version allows or refuses that was hardly meant. config: what it was loaded from;
 * before: the version that it replaces, or NULL. */
void access_warn(const struct access *access, const struct access *before,
                 const struct config *config);

/* From any thread. */
struct access *access_hold(struct access *access);
/* Takes NULL. */
void access_release(struct access *access);

/* --- clients --- */

/* Why a request is refused; each reason is counted. */
enum access_failure {
    ACCESS_NO_CREDENTIALS,      /* no token and no certificate */
    ACCESS_BAD_CREDENTIALS,     /* Authorization is malformed, or of another scheme */
    ACCESS_UNKNOWN_TOKEN,       /* no line of the tokens file has it, no key signed it */
    ACCESS_FOREIGN_TOKEN,       /* signed, but by another issuer or for another audience */
    ACCESS_EXPIRED_TOKEN,       /* signed, but not valid any more, or not yet */
    ACCESS_UNKNOWN_SUBJECT,     /* valid, but no line has its subject */
    ACCESS_UNKNOWN_CERTIFICATE, /* no line has one of its names */
    ACCESS_UNNAMED_CERTIFICATE, /* it has no name that can be compared */
    ACCESS_UNKNOWN_KEY,         /* no line of the keys file has the access key */
    ACCESS_BAD_SIGNATURE,       /* made with another secret, or for another request */
    ACCESS_EXPIRED_SIGNATURE,   /* right perhaps, but not now */
    ACCESS_NO_MEMORY,
    ACCESS_SCOPE, /* the client is known, but may only do less */
    ACCESS_MODEL, /* the client may not see this model */
    ACCESS_FAILURES
};

/* Counts a refused request, and returns how many there were since the start. From any thread. */
void access_count_failure(enum access_failure failure);
uint64_t access_failures(enum access_failure failure);
/* "scope": a name for a label. */
const char *access_failure_name(enum access_failure failure);

/* What a request shows. */
struct credentials {
    enum authorization authorization;
    struct zt_text token;     /* if authorization is BEARER */
    const char *const *names; /* in its verified certificate; NULL: it showed none */
};

struct token_memory;

/* Finds the client of a request. A token counts, even if it is wrong, and not the certificate.
 * memory, of the calling thread, may be NULL. NULL with the reason if the client must be
 * refused. */
const struct grant *access_identify(const struct access *access,
                                    const struct credentials *credentials,
                                    struct token_memory *memory, enum access_failure *out_failure);

/* What lets a client of this name in: a number that changes with its line of the tokens file, and
 * when clients begin or cease to need one. 0: nothing does. What the server has signed for a client
 * holds as long as this stays the same. */
uint64_t access_line_of(const struct access *access, const char *client);

#endif
