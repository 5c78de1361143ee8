/* Both lists are read once, from left to right. An entry that names no address ("unknown", a word
 * that hides it) may be the client as well as any other. */
#include "http/fields/forwarded.h"

#include <string.h>
#include <strings.h>

#include "http/fields/grammar.h"

/* The rightmost entry that is not a trusted proxy's, of those read so far. */
struct candidate {
    bool is_set;
    bool is_known; /* it names an address */
    struct address address;
};

/* One node: an address, in brackets if a port may follow and it is of IPv6. */
static bool read_node(const char *text, size_t length, struct address *out_address)
{
    const char *colon = memchr(text, ':', length);
    const char *close;

    if (length > 0 && text[0] == '[') {
        close = memchr(text, ']', length);
        return close != NULL && address_parse(text + 1, (size_t)(close - text) - 1, out_address);
    }
    /* With one colon: IPv4 and a port. */
    if (colon != NULL && memchr(colon + 1, ':', length - (size_t)(colon - text) - 1) == NULL)
        length = (size_t)(colon - text);
    return address_parse(text, length, out_address);
}

static void take_node(struct candidate *candidate, const struct trust *trust, const char *text,
                      size_t length)
{
    struct address address;
    const bool is_known = text != NULL && read_node(text, length, &address);

    if (candidate->is_set && is_known && trust->is_trusted(trust->context, &address))
        return;
    candidate->is_set = true;
    candidate->is_known = is_known;
    if (is_known)
        candidate->address = address;
}

static void read_x_forwarded_for(const char *field, const struct trust *trust,
                                 struct candidate *candidate)
{
    const char *at = field;

    for (;;) {
        const char *start;
        size_t length;

        skip_space(&at);
        start = at;
        length = strcspn(at, ",");
        at += length;
        while (length > 0 && is_one_of(start[length - 1], " \t"))
            length--;
        take_node(candidate, trust, start, length);
        if (*at == '\0')
            return;
        at++;
    }
}

/* A value: a token, or a quoted string, in which nothing that an address needs is escaped. */
static bool read_value(const char **at, const char **out_text, size_t *out_length)
{
    const char *start = *at;

    if (*start != '"') {
        *out_length = strcspn(start, " \t,;\"");
        *out_text = start;
        *at += *out_length;
        return *out_length > 0;
    }
    start++;
    *out_length = strcspn(start, "\"\\");
    *out_text = start;
    *at = start + *out_length + 1;
    return start[*out_length] == '"';
}

/* One element, "for=192.0.2.1;proto=https". at stands at its first pair, and afterwards at the
 * comma or the end. False if it is malformed. *out_node is NULL without a `for`. */
static bool read_element(const char **at, const char **out_node, size_t *out_length)
{
    *out_node = NULL;
    for (;;) {
        const char *name = *at;
        const char *text;
        size_t name_length;
        size_t length;

        while (is_token_char(**at))
            (*at)++;
        name_length = (size_t)(*at - name);
        if (name_length == 0 || **at != '=')
            return false;
        (*at)++;
        if (!read_value(at, &text, &length))
            return false;
        if (name_length == 3 && strncasecmp(name, "for", 3) == 0) {
            *out_node = text;
            *out_length = length;
        }
        skip_space(at);
        if (**at != ';')
            return **at == ',' || **at == '\0';
        (*at)++;
        skip_space(at);
    }
}

/* False if the field is malformed. */
static bool read_forwarded(const char *field, const struct trust *trust,
                           struct candidate *candidate)
{
    const char *at = field;

    for (;;) {
        const char *node;
        size_t length = 0;

        skip_space(&at);
        if (!read_element(&at, &node, &length))
            return false;
        take_node(candidate, trust, node, length);
        if (*at == '\0')
            return true;
        at++;
    }
}

bool forwarded_client(const char *forwarded, const char *x_forwarded_for, const struct trust *trust,
                      struct address *out_client)
{
    struct candidate standard = {.is_set = false};
    struct candidate common = {.is_set = false};

    if (forwarded != NULL && (!read_forwarded(forwarded, trust, &standard) || !standard.is_known))
        return false;
    if (x_forwarded_for != NULL)
        read_x_forwarded_for(x_forwarded_for, trust, &common);
    if (x_forwarded_for != NULL && !common.is_known)
        return false;
    if (forwarded != NULL && x_forwarded_for != NULL &&
        memcmp(&standard.address, &common.address, sizeof(struct address)) != 0)
        return false;
    if (forwarded == NULL && x_forwarded_for == NULL)
        return false;
    *out_client = forwarded != NULL ? standard.address : common.address;
    return true;
}
