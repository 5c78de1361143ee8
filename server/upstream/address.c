/* Only forms that Hubs use are accepted: everything else is refused, not guessed. */
#include "upstream/address.h"

#include <assert.h>
#include <string.h>

#include "config/browsers.h"

static bool begins_with(struct zt_text text, const char *beginning)
{
    const size_t length = strlen(beginning);

    return text.length >= length && strncasecmp(text.bytes, beginning, length) == 0;
}

static struct zt_text without(struct zt_text text, size_t length)
{
    assert(length <= text.length);
    return (struct zt_text){text.bytes + length, text.length - length};
}

/* The bytes before the first of these characters. */
static size_t length_before(struct zt_text text, const char *characters)
{
    const size_t count = strlen(characters);
    size_t length = 0;

    while (length < text.length && memchr(characters, text.bytes[length], count) == NULL)
        length++;
    return length;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_visible(struct zt_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] <= ' ' || text.bytes[i] > '~')
            return false;
    return true;
}

static bool write_origin(const char *scheme, struct zt_text host, const char *default_port,
                         char out_origin[ADDRESS_ORIGIN_SIZE])
{
    const size_t scheme_length = strlen(scheme);

    if (zt_text_ends_with(host, zt_text_from(default_port)))
        host.length -= strlen(default_port);
    if (host.length == 0 || scheme_length + host.length >= ADDRESS_ORIGIN_SIZE)
        return false;
    memcpy(out_origin, scheme, scheme_length);
    for (size_t i = 0; i < host.length; i++)
        out_origin[scheme_length + i] = lower(host.bytes[i]);
    out_origin[scheme_length + host.length] = '\0';
    return true;
}

static bool write_target(struct zt_text text, char out_target[REMOTE_LOCATION_SIZE])
{
    const bool lacks_slash = text.length == 0 || text.bytes[0] != '/';

    text.length = length_before(text, "#");
    if (text.length + lacks_slash >= REMOTE_LOCATION_SIZE || !is_visible(text))
        return false;
    out_target[0] = '/';
    if (text.length > 0)
        memcpy(out_target + lacks_slash, text.bytes, text.length);
    out_target[lacks_slash + text.length] = '\0';
    return true;
}

bool address_read(struct zt_text url, struct upstream_address *out_address)
{
    const bool is_tls = begins_with(url, "https://");
    struct upstream_address address;
    struct zt_text rest;
    struct zt_text host;

    if (!is_tls && !begins_with(url, "http://"))
        return false;
    rest = without(url, is_tls ? 8 : 7);
    host = (struct zt_text){rest.bytes, length_before(rest, "/?#")};
    if (!config_is_host_and_port(host.bytes, host.length) ||
        !write_origin(is_tls ? "https://" : "http://", host, is_tls ? ":443" : ":80",
                      address.origin) ||
        !write_target(without(rest, host.length), address.target))
        return false;
    *out_address = address;
    return true;
}

bool address_is_tls(const struct upstream_address *address)
{
    return strncmp(address->origin, "https:", 6) == 0;
}

bool address_is_same_origin(const struct upstream_address *a, const struct upstream_address *b)
{
    return strcmp(a->origin, b->origin) == 0;
}

enum reach address_reach(const struct upstream_address *address)
{
    char host[ADDRESS_ORIGIN_SIZE];
    const char *begin = strstr(address->origin, "://") + 3;
    const size_t length = begin[0] == '[' ? strcspn(begin, "]") + 1 : strcspn(begin, ":");

    assert(length <= strlen(begin));
    memcpy(host, begin, length);
    host[length] = '\0';
    return reach_of_host(host);
}

bool address_follow(const struct upstream_address *from, struct zt_text location,
                    struct upstream_address *out_address)
{
    struct upstream_address address = *from;

    if (begins_with(location, "http://") || begins_with(location, "https://"))
        return address_read(location, out_address);
    if (!begins_with(location, "/") || begins_with(location, "//") ||
        !write_target(location, address.target))
        return false;
    *out_address = address;
    return true;
}

/* --- links --- */

static void skip_blanks(struct zt_text *text)
{
    while (text->length > 0 && (text->bytes[0] == ' ' || text->bytes[0] == '\t'))
        *text = without(*text, 1);
}

/* Takes a token or a quoted string, whose escapes are kept. */
static bool take_value(struct zt_text *text, struct zt_text *out_value)
{
    size_t length;

    if (!begins_with(*text, "\"")) {
        length = length_before(*text, " \t,;\"=<>");
        *out_value = (struct zt_text){text->bytes, length};
        *text = without(*text, length);
        return length > 0;
    }
    for (length = 1; length < text->length && text->bytes[length] != '"'; length++)
        length += text->bytes[length] == '\\';
    if (length >= text->length)
        return false;
    *out_value = (struct zt_text){text->bytes + 1, length - 1};
    *text = without(*text, length + 1);
    return true;
}

/* Whether one of the words is "next". */
static bool has_next(struct zt_text words)
{
    static const struct zt_text next = {"next", 4};

    while (words.length > 0) {
        const size_t length = length_before(words, " ");

        if (length == next.length && begins_with(words, next.bytes))
            return true;
        words = without(words, length < words.length ? length + 1 : length);
    }
    return false;
}

/* Takes "; name=value; …" up to a comma or the end. Only the first rel counts. */
static bool take_parameters(struct zt_text *text, bool *out_is_next)
{
    bool has_rel = false;

    *out_is_next = false;
    for (skip_blanks(text); begins_with(*text, ";"); skip_blanks(text)) {
        struct zt_text name;
        struct zt_text value = {"", 0};
        bool is_rel;

        *text = without(*text, 1);
        skip_blanks(text);
        name = (struct zt_text){text->bytes, length_before(*text, " \t,;\"=<>")};
        *text = without(*text, name.length);
        skip_blanks(text);
        is_rel = name.length == 3 && begins_with(name, "rel") && !has_rel;
        if (begins_with(*text, "=")) {
            *text = without(*text, 1);
            skip_blanks(text);
            if (!take_value(text, &value))
                return false;
        }
        has_rel = has_rel || is_rel;
        *out_is_next = *out_is_next || (is_rel && has_next(value));
    }
    return text->length == 0 || begins_with(*text, ",");
}

enum address_link address_next(struct zt_text link, struct zt_text *out_url)
{
    enum address_link found = ADDRESS_LINK_NONE;

    for (;;) {
        struct zt_text url;
        bool is_next;

        for (skip_blanks(&link); begins_with(link, ","); skip_blanks(&link))
            link = without(link, 1);
        if (link.length == 0)
            return found;
        url = without(link, 1);
        url.length = length_before(url, ">");
        if (link.bytes[0] != '<' || url.length + 1 == link.length)
            return ADDRESS_LINK_MALFORMED;
        link = without(link, url.length + 2);
        if (!take_parameters(&link, &is_next) || (is_next && found == ADDRESS_LINK_FOUND))
            return ADDRESS_LINK_MALFORMED;
        if (is_next) {
            *out_url = url;
            found = ADDRESS_LINK_FOUND;
        }
    }
}
