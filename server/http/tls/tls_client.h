/* The client's side of TLS on a connected socket, for short exchanges: everything blocks. */
#ifndef HTTP_TLS_TLS_CLIENT_H
#define HTTP_TLS_TLS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_client;

/* Begins a session on a connected socket, which stays the caller's. The certificate must be for
 * host and by an authority of ca_file (PEM), or with NULL one that the system trusts; host NULL
 * accepts any. NULL with one line in error. */
struct tls_client *tls_client_open(int descriptor, const char *host, const char *ca_file,
                                   char *error, size_t error_size);

bool tls_client_send(struct tls_client *client, const void *bytes, size_t length);

/* At most size bytes; 0 at the end, -1 if the connection broke. */
ssize_t tls_client_receive(struct tls_client *client, void *bytes, size_t size);

/* Ends the session. Takes NULL. */
void tls_client_close(struct tls_client *client);

#endif
