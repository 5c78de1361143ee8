/* Parses listening addresses: host:port, with brackets around an IPv6 address (RFC 3986 section
 * 3.2.2). */
#include "config/config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "config/value.h"

/* Of "65535". */
#define PORT_DIGITS 5

/* An IPv6 address, optionally followed by a zone (fe80::1%eth0). */
static bool is_ipv6(const char *host)
{
    char address[INET6_ADDRSTRLEN];
    size_t length = strcspn(host, "%");
    struct in6_addr parsed;

    if (length >= sizeof(address) || (host[length] == '%' && host[length + 1] == '\0'))
        return false;
    memcpy(address, host, length);
    address[length] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1;
}

/* An IPv4 address or a name. Text that consists of digits and dots must be a valid address. */
static bool is_ipv4_or_name(const char *host)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    struct in_addr parsed;

    if (host[strspn(host, "0123456789.")] == '\0')
        return inet_pton(AF_INET, host, &parsed) == 1;
    return host[strspn(host, letters)] == '\0' && host[0] != '.' && host[0] != '-';
}

bool config_listen_parse(const char *text, struct config_listen *out_listen,
                         struct config_message *message)
{
    struct config_listen listen;
    const char *colon = strrchr(text, ':');
    const char *host = text;
    uint32_t port;
    size_t length;
    bool bracketed;

    if (colon == NULL)
        return config_fail(message, "\"%.300s\" is not host:port", text);
    length = strlen(colon + 1);
    if (length > PORT_DIGITS || !config_digits_read(colon + 1, length, UINT16_MAX, &port))
        return config_fail(message, "\"%.300s\" must end in a port from 0 to 65535", text);
    listen.port = (uint16_t)port;
    length = (size_t)(colon - text);
    bracketed = length >= 2 && text[0] == '[' && colon[-1] == ']';
    if (bracketed) {
        host++;
        length -= 2;
    }
    if (length == 0)
        return config_fail(message, "\"%.300s\" has no host; 0.0.0.0 or [::] means all addresses",
                           text);
    if (length >= sizeof(listen.host))
        return config_fail(message, "the host of \"%.300s\" is too long", text);
    memcpy(listen.host, host, length);
    listen.host[length] = '\0';
    if (!bracketed && is_ipv6(listen.host))
        return config_fail(message, "\"%.300s\" needs brackets around its IPv6 address", text);
    if (bracketed ? !is_ipv6(listen.host) : !is_ipv4_or_name(listen.host))
        return config_fail(message, "\"%.300s\" has no usable host", text);
    *out_listen = listen;
    return true;
}

bool config_listen_wants_port(const char *text)
{
    static const char ending[] = ":$PORT";
    const size_t length = strlen(text);

    return length > sizeof(ending) - 1 && strcmp(text + length - (sizeof(ending) - 1), ending) == 0;
}

bool config_listen_is_loopback(const struct config_listen *listen)
{
    static const uint8_t mapped_prefix[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    struct in_addr four;
    struct in6_addr six;

    if (strcasecmp(listen->host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, listen->host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, listen->host, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six) ||
               memcmp(&six, mapped_prefix, sizeof(mapped_prefix)) == 0;
    return false;
}
