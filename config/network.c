/* Addresses and networks, from text and to text. */
#include "config/network.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "config/value.h"

/* Of "128". */
#define BITS_DIGITS 3

#define IPV4_OFFSET 12 /* of an IPv4 address in the IPv6 address that it is mapped to */

static const uint8_t mapped[IPV4_OFFSET] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

static bool is_ipv4(const struct address *address)
{
    return memcmp(address->bytes, mapped, sizeof(mapped)) == 0;
}

bool address_parse(const char *text, size_t length, struct address *out_address)
{
    char copy[ADDRESS_TEXT_SIZE];

    if (length >= sizeof(copy) || memchr(text, '\0', length) != NULL)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (inet_pton(AF_INET6, copy, out_address->bytes) == 1)
        return true;
    if (inet_pton(AF_INET, copy, out_address->bytes + IPV4_OFFSET) != 1)
        return false;
    memcpy(out_address->bytes, mapped, sizeof(mapped));
    return true;
}

bool address_of_socket(const struct sockaddr *socket_address, struct address *out_address)
{
    const void *any = socket_address;

    if (socket_address->sa_family == AF_INET6) {
        memcpy(out_address->bytes, &((const struct sockaddr_in6 *)any)->sin6_addr, 16);
        return true;
    }
    if (socket_address->sa_family != AF_INET)
        return false;
    memcpy(out_address->bytes, mapped, sizeof(mapped));
    memcpy(out_address->bytes + IPV4_OFFSET, &((const struct sockaddr_in *)any)->sin_addr, 4);
    return true;
}

bool address_is_local(const struct address *peer, const struct address *own)
{
    static const uint8_t mapped_loopback[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    static const uint8_t loopback[16] = {[15] = 1};

    return memcmp(peer->bytes, mapped_loopback, sizeof(mapped_loopback)) == 0 ||
           memcmp(peer->bytes, loopback, sizeof(loopback)) == 0 ||
           memcmp(peer->bytes, own->bytes, sizeof(own->bytes)) == 0;
}

void address_print(const struct address *address, char out_text[ADDRESS_TEXT_SIZE])
{
    const bool short_form = is_ipv4(address);
    const char *printed =
        inet_ntop(short_form ? AF_INET : AF_INET6, address->bytes + (short_form ? IPV4_OFFSET : 0),
                  out_text, ADDRESS_TEXT_SIZE);

    assert(printed != NULL);
    (void)printed;
}

bool network_parse(const char *text, size_t length, struct network *out_network)
{
    const char *slash = memchr(text, '/', length);
    const size_t address_length = slash != NULL ? (size_t)(slash - text) : length;
    struct network network = {.bits = 128};
    uint32_t bits;

    if (!address_parse(text, address_length, &network.address))
        return false;
    if (slash != NULL) {
        /* As it is written: ::ffff:10.0.0.0/104 is a network of IPv6. */
        const bool short_form = memchr(text, ':', address_length) == NULL;
        const unsigned most = short_form ? 32 : 128;
        const size_t digits = length - address_length - 1;

        if (digits > BITS_DIGITS || !config_digits_read(slash + 1, digits, most, &bits))
            return false;
        network.bits = 128 - most + bits;
    }
    assert(network.bits <= 128);
    *out_network = network;
    return true;
}

bool network_contains(const struct network *network, const struct address *address)
{
    const unsigned whole = network->bits / 8;
    const unsigned rest = network->bits % 8;
    const uint8_t *a = network->address.bytes;
    const uint8_t *b = address->bytes;

    assert(network->bits <= 128);
    return memcmp(a, b, whole) == 0 && (rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0);
}
