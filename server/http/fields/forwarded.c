/* Reads each list once, from left to right. An entry without an address ("unknown", or a word that
 * hides it) may be the client like any other entry. */
#include "http/fields/forwarded.h"

#include <string.h>
#include <strings.h>

#include "http/fields/grammar.h"

/* The rightmost entry so far that is not a trusted proxy. */
struct candidate {
    bool is_set;
    bool is_known; /* it names an address */
    struct address address;
};

/* Reads one node: an address. An IPv6 address with a port is in brackets. */
static bool read_node(const char *text, size_t length, struct address *out_address)
{
    const char *colon = memchr(text, ':', length);
    const char *close;

    if (length > 0 && text[0] == '[') {
        close = memchr(text, ']', length);
        return close != NULL && address_parse(text + 1, (size_t)(close - text) - 1, out_address);
    }
    /* One colon: an IPv4 address and a port. */
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

/* Reads a value: a token or a quoted string. Escapes are not decoded, because addresses need
 * none. */
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

/* A text is absent if its bytes are NULL. */
struct element {
    struct zt_text node; /* for */
    struct zt_text proto;
    struct zt_text host;
};

static struct zt_text *member_of(struct element *element, const char *name, size_t length)
{
    if (length == 3 && strncasecmp(name, "for", 3) == 0)
        return &element->node;
    if (length == 4 && strncasecmp(name, "host", 4) == 0)
        return &element->host;
    return length == 5 && strncasecmp(name, "proto", 5) == 0 ? &element->proto : NULL;
}

/* Reads one element, "for=192.0.2.1;proto=https". *at is at its first pair, and afterwards at the
 * comma or the end. Returns false if the element is malformed. */
static bool read_element(const char **at, struct element *out_element)
{
    *out_element = (struct element){.node = {NULL, 0}};
    for (;;) {
        const char *name = *at;
        struct zt_text *member;
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
        member = member_of(out_element, name, name_length);
        if (member != NULL)
            *member = (struct zt_text){text, length};
        skip_space(at);
        if (**at != ';')
            return **at == ',' || **at == '\0';
        (*at)++;
        skip_space(at);
    }
}

/* Reads the field. Returns false if it is malformed. *out_last is its last element. */
static bool read_forwarded(const char *field, const struct trust *trust,
                           struct candidate *candidate, struct element *out_last)
{
    const char *at = field;

    for (;;) {
        skip_space(&at);
        if (!read_element(&at, out_last))
            return false;
        take_node(candidate, trust, out_last->node.bytes, out_last->node.length);
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
    struct element last;

    if (forwarded != NULL &&
        (!read_forwarded(forwarded, trust, &standard, &last) || !standard.is_known))
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

/* --- scheme and host --- */

static bool trusts_nobody(const void *context, const struct address *address)
{
    (void)context, (void)address;
    return false;
}

/* Returns the last entry of a list without surrounding blanks; absent if the list is empty. */
static struct zt_text last_word(const char *field)
{
    const char *comma = field != NULL ? strrchr(field, ',') : NULL;
    const char *at = comma != NULL ? comma + 1 : field;
    size_t length;

    if (field == NULL)
        return (struct zt_text){NULL, 0};
    skip_space(&at);
    length = strlen(at);
    while (length > 0 && is_one_of(at[length - 1], " \t"))
        length--;
    return (struct zt_text){length > 0 ? at : NULL, length};
}

static struct zt_text agreed(struct zt_text a, struct zt_text b)
{
    const bool differ = a.bytes != NULL && b.bytes != NULL &&
                        (a.length != b.length || strncasecmp(a.bytes, b.bytes, a.length) != 0);

    if (differ)
        return (struct zt_text){NULL, 0};
    return a.bytes != NULL ? a : b;
}

void forwarded_place(const struct forwarded_fields *fields, struct forwarded_place *out_place)
{
    const struct trust nobody = {trusts_nobody, NULL};
    struct candidate ignored = {.is_set = false};
    struct element last = {.node = {NULL, 0}};

    *out_place = (struct forwarded_place){.scheme = {NULL, 0}};
    if (fields->forwarded != NULL && !read_forwarded(fields->forwarded, &nobody, &ignored, &last))
        return;
    out_place->scheme = agreed(last.proto, last_word(fields->x_forwarded_proto));
    out_place->host = agreed(last.host, last_word(fields->x_forwarded_host));
}
