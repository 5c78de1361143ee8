/* Parses bearer tokens. */
#include "http/fields/authorization.h"

#include <strings.h>

#include "http/fields/grammar.h"
#include "input/blanks.h"

static const char name[] = "Authorization";
static const char scheme[] = "Bearer";

/* Finds the only Authorization field. */
static enum authorization find_field(const struct header_field *fields, unsigned count,
                                     const struct header_field **out_field)
{
    enum authorization found = AUTHORIZATION_ABSENT;

    for (unsigned i = 0; i < count; i++) {
        if (fields[i].name_length != sizeof(name) - 1 || strcasecmp(fields[i].name, name) != 0)
            continue;
        if (found != AUTHORIZATION_ABSENT)
            return AUTHORIZATION_MALFORMED;
        *out_field = &fields[i];
        found = AUTHORIZATION_BEARER;
    }
    return found;
}

/* b64token = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=" */
static bool is_b64token(struct zt_text text)
{
    size_t at = 0;

    while (at < text.length && (is_alpha(text.bytes[at]) || is_digit(text.bytes[at]) ||
                                is_one_of(text.bytes[at], "-._~+/")))
        at++;
    if (at == 0)
        return false;
    while (at < text.length && text.bytes[at] == '=')
        at++;
    return at == text.length;
}

enum authorization authorization_read(const struct header_field *fields, unsigned count,
                                      struct zt_text *out_token)
{
    const struct header_field *field = NULL;
    enum authorization found = find_field(fields, count, &field);
    struct zt_text text;
    size_t at;

    if (found != AUTHORIZATION_BEARER)
        return found;
    /* Some versions of the HTTP library keep the blanks around a value. */
    text = text_trimmed((struct zt_text){field->value, field->value_length});
    for (at = 0; at < text.length && is_token_char(text.bytes[at]);)
        at++;
    if (at != sizeof(scheme) - 1 || strncasecmp(text.bytes, scheme, at) != 0)
        return at > 0 ? AUTHORIZATION_OTHER : AUTHORIZATION_MALFORMED;
    text.bytes += at;
    text.length -= at;
    /* 1*SP: a tab is not a separator. */
    for (at = 0; at < text.length && text.bytes[at] == ' ';)
        at++;
    text.bytes += at;
    text.length -= at;
    if (at == 0 || !is_b64token(text))
        return AUTHORIZATION_MALFORMED;
    *out_token = text;
    return AUTHORIZATION_BEARER;
}
