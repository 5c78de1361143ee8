/* Internet addresses and networks ("10.0.0.0/8", "fd00::/8", "192.0.2.1"), as the configuration
 * names them. An IPv4 address counts as the IPv6 address that it is mapped to (RFC 4291 section
 * 2.5.5.2), so that there is one kind. */
#ifndef CONFIG_NETWORK_H
#define CONFIG_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

/* Any address as text, and a NUL. */
#define ADDRESS_TEXT_SIZE 64

struct address {
    uint8_t bytes[16];
};

struct network {
    struct address address;
    unsigned bits; /* of the address that count: 0 to 128 */
};

/* "192.0.2.1", "2001:db8::1", without brackets, port or zone. text need not be terminated. */
bool address_parse(const char *text, size_t length, struct address *out_address);

/* False, and unchanged, if it is not an address of the internet. */
bool address_of_socket(const struct sockaddr *socket_address, struct address *out_address);

/* Whether both ends of a connection are on one machine, as far as their addresses say: the peer's
 * is a loopback address, or the same as one's own. A namespace of its own on the same machine has
 * addresses of its own; two containers of one pod share theirs. */
bool address_is_local(const struct address *peer, const struct address *own);

/* An IPv4 address is written as such. */
void address_print(const struct address *address, char out_text[ADDRESS_TEXT_SIZE]);

/* An address, or an address and the length of a prefix; bits behind the prefix do not count. */
bool network_parse(const char *text, size_t length, struct network *out_network);

bool network_contains(const struct network *network, const struct address *address);

#endif
