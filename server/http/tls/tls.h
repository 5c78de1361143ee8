/* TLS on the listening socket: the certificate, its key, and the authorities whose certificates
 * clients may show, as files that SIGHUP reads again.
 *
 * libmicrohttpd makes the sessions and moves the bytes, with GnuTLS. Only tls.c and tls_session.c
 * include that library. A version is immutable; each connection holds the one with which it began,
 * so that replacing it changes nothing for open connections. From any thread. */
#ifndef HTTP_TLS_TLS_H
#define HTTP_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only, in the server's order:
 * AES of 128 bits is the fastest where processors have instructions for it. */
#define TLS_PRIORITIES                                                               \
    "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:" \
    "-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"

struct tls;         /* the version in force */
struct tls_version; /* what one reading of the files gave */

/* Reads and checks the files that tls.cert, tls.key and tls.client_ca name. NULL with one line in
 * error that names the key and the file. What is doubtful but usable (an expired certificate, a key
 * that everybody may read) is logged as a warning. */
struct tls_version *tls_load(const struct config *config, char *error, size_t error_size);

/* Whether the files are right that the configuration names: together if both the certificate and
 * the key are named, else each alone. False as tls_load; it also logs the same warnings. */
bool tls_check(const struct config *config, char *error, size_t error_size);

struct tls_version *tls_hold(struct tls_version *version);
/* The last release frees it. Takes NULL. */
void tls_release(struct tls_version *version);

/* Takes over the caller's hold of the first version. NULL if out of memory; the version is then
 * released. */
struct tls *tls_new(struct tls_version *version);
/* Takes NULL. */
void tls_free(struct tls *tls);

/* Takes over the caller's hold of a version, which all connections from now on get. */
void tls_replace(struct tls *tls, struct tls_version *version);

/* The version in force, held for the caller. */
struct tls_version *tls_current(struct tls *tls);

/* When the server's certificate in force expires, in seconds since 1970. */
int64_t tls_expires_s(struct tls *tls);

#endif
