/* A version of the TLS files, for tls.c and tls_session.c, which include GnuTLS. */
#ifndef HTTP_TLS_TLS_VERSION_H
#define HTTP_TLS_TLS_VERSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tls_version {
    atomic_uint holders;
    struct gnutls_certificate_credentials_st *credentials;
    /* Encrypts the tickets that resume sessions of this version. */
    unsigned char *ticket_key;
    unsigned ticket_key_size;
    bool asks_clients; /* for certificates */
    bool key_is_open;  /* everybody on the machine may read or change it */
    int64_t begins_s;  /* the server's certificate, in seconds since 1970 */
    int64_t expires_s;
};

#endif
