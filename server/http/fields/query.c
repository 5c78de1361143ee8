/* The query of a target (RFC 3986 section 3.4) as name=value pairs joined by '&', percent-decoded
 * on demand. */
#include "http/exchange/request.h"

#include <string.h>

#include "http/exchange/request_state.h"
#include "http/fields/target.h"

/* Decodes into memory of the request's; false when that is out, or an escape is malformed. */
static bool decode(struct request *request, struct zt_text raw, struct zt_text *out_text)
{
    char *text = request_allocate(request, raw.length + 1);
    size_t length;

    if (text == NULL || !path_decode(raw, text, &length))
        return false;
    *out_text = (struct zt_text){text, length};
    return true;
}

/* Whether a raw name is the one asked for. Nobody escapes a name that has no need of it, but they
 * may. */
static bool name_is(struct request *request, struct zt_text raw, const char *name)
{
    const size_t length = strlen(name);
    struct zt_text text = raw;

    if (memchr(raw.bytes, '%', raw.length) != NULL && !decode(request, raw, &text))
        return false;
    return text.length == length && memcmp(text.bytes, name, length) == 0;
}

/* Notes a parameter that cannot be decoded, so that the request is refused though its handler goes
 * on. */
static bool decode_value(struct request *request, const char *name, struct zt_text raw,
                         struct zt_text *out_value)
{
    if (decode(request, raw, out_value))
        return true;
    request_state(request)->malformed_parameter = name;
    return false;
}

bool request_query(struct request *request, const char *name, unsigned nth,
                   struct zt_text *out_value)
{
    const char *at = strchr(request_target(request), '?');

    while (at != NULL) {
        const char *pair = at + 1;
        const size_t length = strcspn(pair, "&");
        const size_t name_length = strcspn(pair, "&=");
        const size_t value_at = name_length < length ? name_length + 1 : length;

        at = pair[length] == '&' ? pair + length : NULL;
        if (name_is(request, (struct zt_text){pair, name_length}, name) && nth-- == 0)
            return decode_value(request, name, (struct zt_text){pair + value_at, length - value_at},
                                out_value);
    }
    return false;
}
