#include "remote/service_address.h"

#include <stddef.h>
#include <string.h>

#include "config/browsers.h"

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

bool service_address_read(const char *text, struct service_address *out_address)
{
    const size_t scheme = scheme_length(text);
    struct service_address address = {.path = "/"};
    const char *host = text + scheme;
    const char *path = host + strcspn(host, "/?");
    const size_t path_length = strcspn(path, "?");

    if (scheme == 0 || !config_is_host_and_port(host, (size_t)(path - host)))
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
