/* Shows the bytes that libmicrohttpd receives before it parses them.
 *
 * The library receives with recv, or with gnutls_record_recv for TLS, and parses at once and in
 * place; it has no hook in between. So the program defines these two functions itself (tap.c,
 * tls_session.c), and the linker prefers its definitions. They do the same as the originals, and
 * also show the bytes to the calling thread's tap, which may keep them from the receiver. Other
 * threads, and calls without an open tap, are not affected. */
#ifndef HTTP_TAP_TAP_H
#define HTTP_TAP_TAP_H

#include <stdbool.h>
#include <stddef.h>

/* The receiver sees: */
enum tap_verdict {
    TAP_PASS,  /* the bytes */
    TAP_TAKEN, /* that no bytes have arrived yet */
    TAP_END,   /* the end of the connection */
};

struct tap {
    void *context;
    /* Called with bytes received from a descriptor. is_plain: they did not come through TLS. */
    enum tap_verdict (*received)(void *context, int descriptor, bool is_plain, const void *bytes,
                                 size_t length);
};

/* Opens a tap for the calling thread and replaces the current one; NULL: none. The tap must stay
 * valid. */
void tap_open(const struct tap *tap);

/* Shows bytes to the calling thread's tap. */
enum tap_verdict tap_show(int descriptor, bool is_plain, const void *bytes, size_t length);

#endif
