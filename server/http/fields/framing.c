/* The rules of framing.h, one statement each. */
#include "http/fields/framing.h"

#include <string.h>
#include <strings.h>

/* Characters of a field name (RFC 9110 section 5.6.2). */
#define TOKEN_MARKS "!#$%&'*+-.^_`|~"

struct seen {
    unsigned lengths;
    unsigned codings;
    unsigned hosts;
    const struct header_field *length;
    const struct header_field *coding;
    const struct header_field *expect;
};

static bool is_token(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char byte = bytes[i];
        const char lower = (char)(byte | 0x20);

        if (!(byte >= '0' && byte <= '9') && !(lower >= 'a' && lower <= 'z') &&
            (byte == '\0' || strchr(TOKEN_MARKS, byte) == NULL))
            return false;
    }
    return length > 0;
}

static bool has_control(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)bytes[i] < 0x20 && bytes[i] != '\t') || bytes[i] == 0x7F)
            return true;
    return false;
}

static bool begins_with(const struct header_field *field, const char *name)
{
    const size_t length = strlen(name);

    return field->name_length >= length && strncasecmp(field->name, name, length) == 0;
}

static bool is_named(const struct header_field *field, const char *name)
{
    return field->name_length == strlen(name) && begins_with(field, name);
}

static const char *check_field(const struct header_field *field, struct seen *seen)
{
    if (!is_token(field->name, field->name_length))
        return "a field name is not a token";
    if (has_control(field->value, field->value_length))
        return "a field value holds a control character";
    /* A folded line is glued to the name of its field: "Content-Length:\r\n 5" comes as
     * "Content-Length5". */
    if (begins_with(field, "Content-Length") && !is_named(field, "Content-Length"))
        return "a field name begins with Content-Length";
    if (begins_with(field, "Transfer-Encoding") && !is_named(field, "Transfer-Encoding"))
        return "a field name begins with Transfer-Encoding";
    if (is_named(field, "Content-Length")) {
        seen->lengths++;
        seen->length = field;
    }
    if (is_named(field, "Transfer-Encoding")) {
        seen->codings++;
        seen->coding = field;
    }
    seen->hosts += is_named(field, "Host");
    if (is_named(field, "Expect"))
        seen->expect = field;
    return NULL;
}

/* Digits only, and less than 2^63, which no file system exceeds. */
static bool parse_length(const struct header_field *field, uint64_t *out_length)
{
    uint64_t length = 0;

    for (uint32_t i = 0; i < field->value_length; i++) {
        const char digit = field->value[i];

        if (digit < '0' || digit > '9' || length > (INT64_MAX - 9) / 10)
            return false;
        length = length * 10 + (uint64_t)(digit - '0');
    }
    *out_length = length;
    return field->value_length > 0;
}

static const char *check_together(const struct seen *seen, bool http_1_0, uint64_t *out_length)
{
    *out_length = 0;
    if (seen->hosts > 1)
        return "Host is repeated";
    if (seen->lengths > 1)
        return "Content-Length is repeated";
    if (seen->codings > 1)
        return "Transfer-Encoding is repeated";
    if (seen->lengths > 0 && seen->codings > 0)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (seen->lengths > 0 && !parse_length(seen->length, out_length))
        return "Content-Length is not a length";
    if (seen->codings > 0) {
        *out_length = UINT64_MAX;
        if (seen->coding->value_length != strlen("chunked") ||
            strcasecmp(seen->coding->value, "chunked") != 0)
            return "Transfer-Encoding is not chunked";
        /* RFC 9112 section 6.1: what stands between may not know it and take the chunks for
         * something else. */
        if (http_1_0)
            return "HTTP/1.0 has no Transfer-Encoding";
    }
    if (seen->hosts == 0 && !http_1_0)
        return "Host is missing";
    return NULL;
}

void framing_check(const struct header_field *fields, unsigned count, bool http_1_0,
                   struct framing *out_framing)
{
    struct seen seen = {0};

    *out_framing = (struct framing){.verdict = FRAMING_SOUND};
    for (unsigned i = 0; i < count && out_framing->why == NULL; i++)
        out_framing->why = check_field(&fields[i], &seen);
    if (out_framing->why == NULL)
        out_framing->why = check_together(&seen, http_1_0, &out_framing->body_length);
    if (out_framing->why != NULL) {
        out_framing->verdict = FRAMING_BROKEN;
    } else if (seen.expect != NULL && strcasecmp(seen.expect->value, "100-continue") != 0) {
        out_framing->verdict = FRAMING_EXPECTATION;
        out_framing->why = "only 100-continue can be expected";
    }
}
