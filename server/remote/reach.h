/* How far inside a network an address is: an upstream on the internet must not be able to direct
 * this server to a service beside it. */
#ifndef REMOTE_REACH_H
#define REMOTE_REACH_H

#include <stdbool.h>

struct sockaddr;

enum reach {
    REACH_ANY, /* unknown */
    REACH_PUBLIC,
    REACH_PRIVATE,   /* of the same network: RFC 1918, RFC 4193, RFC 6598 */
    REACH_LOOPBACK,  /* this machine */
    REACH_LINK_LOCAL /* the same wire, multicast, and services of clouds about their machines */
};

/* Returns the reach of an IPv4 or IPv6 address, also of IPv4 in IPv6; REACH_LINK_LOCAL for other
 * families. */
enum reach reach_of_address(const struct sockaddr *address);

/* host: without a port, perhaps in brackets; a literal address, or "localhost". REACH_ANY:
 * a name. REACH_LINK_LOCAL for what resolvers read as an address although it is not written as one
 * ("0x7f.1"). */
enum reach reach_of_host(const char *host);

#endif
