/* The TLS side of one connection: what it gets when it begins, and what the server needs to know or
 * to send beside libmicrohttpd. For the loop's thread. */
#ifndef HTTP_TLS_TLS_SESSION_H
#define HTTP_TLS_TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gnutls_session_int;
struct tls;
struct tls_session;

/* Prepares the library's session of a new connection: certificate, tickets, and the request for a
 * certificate of the client. NULL if that fails; the connection must then be closed. */
struct tls_session *tls_session_begin(struct tls *tls, struct gnutls_session_int *library);

/* To be called when the library has freed its session, of which nothing can be asked any more.
 * Takes NULL. */
void tls_session_detach(struct tls_session *session);
/* After tls_session_detach. Takes NULL. */
void tls_session_end(struct tls_session *session);

/* Whether bytes of the client wait in the session; the socket then does not have to be readable. */
bool tls_session_has_unread(const struct tls_session *session);

/* Whether the client is asked for a certificate, so that its identity depends on the connection.
 * False for NULL. */
bool tls_session_asks_client(const struct tls_session *session);

/* Sends as many bytes as the socket takes. Returns how many; 0 if none now; -1 if the session has
 * failed. Until all are sent, no other bytes may be sent, and each call must begin with the first
 * unsent byte. */
ssize_t tls_session_send(struct tls_session *session, const void *bytes, size_t length);

/* Sends as much of a last text as fits into the socket's buffer, and the end of the session.
 * Nothing else may be being sent. */
void tls_session_send_last(struct tls_session *session, const void *bytes, size_t length);

/* How many bytes of answers are in so many bytes on the wire; a lower bound. */
uint64_t tls_session_content_of(const struct tls_session *session, uint64_t wire_bytes);

/* The names in the client's certificate: common name of the subject; DNS names, URIs and email
 * addresses of the alternative names. A list that ends with NULL, borrowed until the session ends;
 * empty if none of them can be compared. NULL if the client showed no certificate, if it is not
 * (any more) valid, or out of memory. */
const char *const *tls_session_client_names(struct tls_session *session);

#endif
