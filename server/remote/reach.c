/* Follows the registries of special addresses (RFC 6890) as far as they matter here. */
#include "remote/reach.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* A network: the first bits of its addresses. */
struct network {
    uint8_t bytes[16];
    unsigned bits;
    enum reach reach;
};

/* The first that matches counts. */
static const struct network networks_4[] = {
    {{127}, 8, REACH_LOOPBACK},         {{0}, 8, REACH_LOOPBACK},
    {{10}, 8, REACH_PRIVATE},           {{172, 16}, 12, REACH_PRIVATE},
    {{192, 168}, 16, REACH_PRIVATE},    {{100, 100, 100, 200}, 32, REACH_LINK_LOCAL},
    {{100, 64}, 10, REACH_PRIVATE},     {{198, 18}, 15, REACH_PRIVATE},
    {{169, 254}, 16, REACH_LINK_LOCAL}, {{192, 0, 0}, 24, REACH_LINK_LOCAL},
    {{224}, 3, REACH_LINK_LOCAL},
};

static const struct network networks_6[] = {
    {{0xFD, 0, 0x0E, 0xC2}, 32, REACH_LINK_LOCAL},
    {{0xFC}, 7, REACH_PRIVATE},
    {{0xFE, 0xC0}, 10, REACH_PRIVATE},
    {{0xFE, 0x80}, 10, REACH_LINK_LOCAL},
    {{0xFF}, 8, REACH_LINK_LOCAL},
};

static bool is_in(const struct network *network, const uint8_t *address)
{
    const unsigned whole = network->bits / 8;
    const unsigned rest = network->bits % 8;

    return memcmp(network->bytes, address, whole) == 0 &&
           (rest == 0 || (network->bytes[whole] ^ address[whole]) >> (8 - rest) == 0);
}

static enum reach find(const struct network *networks, size_t count, const uint8_t *address)
{
    for (size_t i = 0; i < count; i++)
        if (is_in(&networks[i], address))
            return networks[i].reach;
    return REACH_PUBLIC;
}

static enum reach reach_of_4(const uint8_t *address)
{
    return find(networks_4, sizeof(networks_4) / sizeof(networks_4[0]), address);
}

/* IPv6 addresses that contain an IPv4 address: mapped and compatible, NAT64 (RFC 6052), 6to4 (RFC
 * 3056). */
static const struct network carriers[] = {
    {{[10] = 0xFF, [11] = 0xFF}, 96, REACH_ANY},
    {{0}, 96, REACH_ANY},
    {{0, 0x64, 0xFF, 0x9B}, 96, REACH_ANY},
    {{0x20, 0x02}, 16, REACH_ANY},
};

static enum reach reach_of_6(const uint8_t *address)
{
    static const uint8_t loopback[16] = {[15] = 1};

    if (memcmp(address, loopback, sizeof(loopback)) == 0)
        return REACH_LOOPBACK;
    for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++)
        if (is_in(&carriers[i], address))
            return reach_of_4(address + carriers[i].bits / 8);
    return find(networks_6, sizeof(networks_6) / sizeof(networks_6[0]), address);
}

enum reach reach_of_address(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return reach_of_4(
            (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    if (address->sa_family == AF_INET6)
        return reach_of_6(
            (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return REACH_LINK_LOCAL;
}

/* Whether inet_aton would read it: digits, dots, and "0x". */
static bool resembles_address(const char *host)
{
    const char *last = strrchr(host, '.');

    last = last != NULL && last[1] != '\0' ? last + 1 : host;
    return strncasecmp(last, "0x", 2) == 0 || strspn(last, "0123456789.") == strlen(last);
}

static bool is_localhost(const char *host)
{
    static const char name[] = "localhost";
    const size_t all = strlen(host);
    const size_t length = all - (host[all - 1] == '.');
    const size_t own = sizeof(name) - 1;

    return length >= own && strncasecmp(host + length - own, name, own) == 0 &&
           (length == own || host[length - own - 1] == '.');
}

enum reach reach_of_host(const char *host)
{
    uint8_t bytes[16];
    char literal[INET6_ADDRSTRLEN];
    const size_t length = strlen(host);

    if (length == 0)
        return REACH_LINK_LOCAL;
    if (host[0] == '[') {
        if (length < 3 || length - 2 >= sizeof(literal))
            return REACH_LINK_LOCAL;
        memcpy(literal, host + 1, length - 2);
        literal[length - 2] = '\0';
        return inet_pton(AF_INET6, literal, bytes) == 1 ? reach_of_6(bytes) : REACH_LINK_LOCAL;
    }
    if (inet_pton(AF_INET, host, bytes) == 1)
        return reach_of_4(bytes);
    if (resembles_address(host))
        return REACH_LINK_LOCAL;
    return is_localhost(host) ? REACH_LOOPBACK : REACH_ANY;
}
