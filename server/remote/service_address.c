#include "remote/service_address.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX 65535

static bool copy(const char *from, size_t length, char out[SERVICE_TEXT_SIZE])
{
    if (length >= SERVICE_TEXT_SIZE)
        return false;
    memcpy(out, from, length);
    out[length] = '\0';
    return true;
}

static size_t scheme_length(const char *text)
{
    if (strncmp(text, "http://", 7) == 0)
        return 7;
    return strncmp(text, "https://", 8) == 0 ? 8 : 0;
}

/* A name or an IPv4 address, or an IPv6 address in brackets, and a port. */
static bool is_host(const char *text, size_t length)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    static const char digits[] = "0123456789";
    size_t used = 0;

    if (length > 2 && text[0] == '[') {
        used = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
        if (used >= length || text[used] != ']')
            return false;
        used++;
    } else {
        used = strspn(text, name);
    }
    if (used == 0 || used > length)
        return false;
    if (used < length && text[used] == ':') {
        const size_t port = strspn(text + used + 1, digits);

        if (port < 1 || port > 5 || strtoul(text + used + 1, NULL, 10) > PORT_MAX)
            return false;
        used += 1 + port;
    }
    return used == length;
}

bool service_address_read(const char *text, struct service_address *out_address)
{
    const size_t scheme = scheme_length(text);
    struct service_address address = {.path = "/"};
    const char *host = text + scheme;
    const char *path = host + strcspn(host, "/?");
    const size_t path_length = strcspn(path, "?");

    if (scheme == 0 || !is_host(host, (size_t)(path - host)))
        return false;
    for (const char *at = path; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~' || *at == '#')
            return false;
    if (!copy(text, (size_t)(path - text), address.origin))
        return false;
    if (path_length > 0 && !copy(path, path_length, address.path))
        return false;
    if (path[path_length] == '?' &&
        !copy(path + path_length + 1, strlen(path + path_length + 1), address.query))
        return false;
    *out_address = address;
    return true;
}

bool service_address_is_safe(const struct service_address *address)
{
    static const char *const hosts[] = {"localhost",     "127.0.0.1",      "[::1]",
                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    const char *host = address->origin + 7;

    if (strncmp(address->origin, "https://", 8) == 0)
        return true;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        const size_t length = strlen(hosts[i]);

        if (strncmp(host, hosts[i], length) == 0 && (host[length] == '\0' || host[length] == ':'))
            return true;
    }
    return false;
}
