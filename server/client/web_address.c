/* Addresses are stored as texts of bounded length; longer ones are rejected. */
#include "client/web_address.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/percent.h"
#include "config/browsers.h"
#include "http/fields/uri.h"

bool web_address_is_meant(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

bool web_address_lacks_scheme(const char *text)
{
    const size_t length = strcspn(text, "/?#");
    const char *colon = memrchr(text, ':', length);

    return colon != NULL && isdigit((unsigned char)colon[1]) &&
           config_is_host_and_port(text, length);
}

/* Returns the length of a URL's origin; 0 if it has none. */
static size_t origin_length(const char *text)
{
    size_t scheme;
    size_t host;

    if (!web_address_is_meant(text))
        return 0;
    scheme = strncasecmp(text, "https://", 8) == 0 ? 8 : 7;
    host = strcspn(text + scheme, "/?#");
    return config_is_host_and_port(text + scheme, host) ? scheme + host : 0;
}

static bool keep_origin(const char *text, size_t length, char out_origin[WEB_ORIGIN_SIZE])
{
    const char *own_port;
    size_t own;

    if (length >= WEB_ORIGIN_SIZE)
        return false;
    for (size_t i = 0; i < length; i++)
        out_origin[i] = (char)tolower((unsigned char)text[i]);
    out_origin[length] = '\0';
    own_port = strncmp(out_origin, "https:", 6) == 0 ? ":443" : ":80";
    own = strlen(own_port);
    if (length > own && strcmp(out_origin + length - own, own_port) == 0)
        out_origin[length - own] = '\0';
    return true;
}

/* Copies path and query, and escapes characters that a request line cannot contain. */
static bool keep_target(const char *text, char out_target[WEB_TARGET_SIZE])
{
    size_t at = 0;

    if (*text != '/')
        out_target[at++] = '/';
    for (; *text != '\0' && *text != '#'; text++) {
        const unsigned char byte = (unsigned char)*text;

        if (byte < ' ' || byte == 0x7F || at + 4 > WEB_TARGET_SIZE)
            return false;
        if (byte == ' ' || byte > 0x7F)
            at = (size_t)(zt_percent_put(out_target + at, (char)byte) - out_target);
        else
            out_target[at++] = (char)byte;
    }
    out_target[at] = '\0';
    return true;
}

bool web_address_read(const char *text, struct web_address *out_address)
{
    const size_t length = origin_length(text);
    struct web_address address;

    if (length == 0 || !keep_origin(text, length, address.origin) ||
        !keep_target(text + length, address.target))
        return false;
    *out_address = address;
    return true;
}

/* --- redirects --- */

/* Removes "." and ".." from the path in place (RFC 3986 section 5.2.4). */
static void resolve_dots(char *target)
{
    char *query = target + strcspn(target, "?");
    char *to = target;
    const char *from = target;

    while (from < query) {
        const size_t length = 1 + strcspn(from + 1, "/?");
        const bool is_last = from + length == query;

        if (length == 2 && from[1] == '.') {
            if (is_last)
                *to++ = '/';
        } else if (length == 3 && from[1] == '.' && from[2] == '.') {
            while (to > target && *--to != '/')
                continue;
            if (is_last)
                *to++ = '/';
        } else {
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    if (to == target)
        *to++ = '/';
    memmove(to, query, strlen(query) + 1);
}

/* Resolves a location without a scheme and host against the base's path. */
static bool follow_path(const struct web_address *base, const char *location, char *text,
                        size_t size)
{
    const struct zt_text path = web_address_path(base);
    size_t kept = path.length;
    int length;

    if (location[0] == '/')
        kept = 0;
    else if (location[0] != '?')
        while (kept > 0 && path.bytes[kept - 1] != '/')
            kept--;
    length = snprintf(text, size, "%.*s%s", (int)kept, path.bytes, location);
    return length >= 0 && (size_t)length < size;
}

bool web_address_follow(const struct web_address *base, const char *location,
                        struct web_address *out_address)
{
    struct web_address address = *base;
    char text[2 * WEB_TARGET_SIZE];

    if (location[0] == '/' && location[1] == '/') {
        snprintf(text, sizeof(text), "%.*s%s", web_address_is_tls(base) ? 6 : 5, base->origin,
                 location);
        return web_address_read(text, out_address);
    }
    if (web_address_is_meant(location))
        return web_address_read(location, out_address);
    if (location[0] == '\0' || strcspn(location, ":") < strcspn(location, "/?#") ||
        !follow_path(base, location, text, sizeof(text)) || !keep_target(text, address.target))
        return false;
    resolve_dots(address.target);
    *out_address = address;
    return true;
}

/* --- parts --- */

bool web_address_is_tls(const struct web_address *address)
{
    return strncmp(address->origin, "https:", 6) == 0;
}

struct zt_text web_address_path(const struct web_address *address)
{
    return (struct zt_text){address->target, strcspn(address->target, "?")};
}

bool web_address_file_name(const struct web_address *address, char *out_name, size_t size)
{
    struct zt_text path = web_address_path(address);
    size_t start = path.length;
    size_t length;

    while (start > 0 && path.bytes[start - 1] != '/')
        start--;
    path = (struct zt_text){path.bytes + start, path.length - start};
    if (path.length >= size || !percent_decode(path, out_name, &length) || length == 0)
        return false;
    out_name[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)out_name[i] < ' ' || out_name[i] == '/' || out_name[i] == 0x7F)
            return false;
    return strcmp(out_name, ".") != 0 && strcmp(out_name, "..") != 0;
}
