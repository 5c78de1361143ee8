/* The rules of framing.h, with one statement each, and the check of a header in memory. */
#include "http/fields/framing.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "base/percent.h"
#include "http/fields/grammar.h"

/* --- Host --- */

/* unreserved and sub-delims of RFC 3986 sections 2.2 and 2.3. */
static bool is_host_char(char byte)
{
    return is_digit(byte) || is_alpha(byte) || is_one_of(byte, "-._~!$&'()*+,;=");
}

/* Returns the length of the reg-name at the start of text (an IPv4 address counts as one). */
static size_t name_length(const char *text, size_t length)
{
    size_t at = 0;

    while (at < length)
        if (is_host_char(text[at]))
            at++;
        else if (zt_percent_value((struct zt_text){text + at, length - at}) >= 0)
            at += ZT_PERCENT_LENGTH;
        else
            break;
    return at;
}

/* "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ) */
static bool is_future_address(const char *text, size_t length)
{
    size_t at = 1;

    if (length == 0 || (text[0] | 0x20) != 'v')
        return false;
    while (at < length && zt_hex_value(text[at]) >= 0)
        at++;
    if (at == 1 || length - at < 2 || text[at] != '.')
        return false;
    for (at++; at < length; at++)
        if (!is_host_char(text[at]) && text[at] != ':')
            return false;
    return true;
}

static bool is_ipv6_address(const char *text, size_t length)
{
    char copy[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return inet_pton(AF_INET6, copy, &address) == 1;
}

/* Returns the length of the "[…]" at the start of text; 0 if it is not an address. */
static size_t literal_length(const char *text, size_t length)
{
    const char *close = memchr(text, ']', length);
    size_t inner;

    if (close == NULL)
        return 0;
    inner = (size_t)(close - text) - 1;
    return is_ipv6_address(text + 1, inner) || is_future_address(text + 1, inner) ? inner + 2 : 0;
}

bool host_is_valid(const char *value, size_t length)
{
    const bool is_literal = length > 0 && value[0] == '[';
    size_t at = is_literal ? literal_length(value, length) : name_length(value, length);

    assert(at <= length);
    if (at == length)
        return true;
    if ((is_literal && at == 0) || value[at] != ':')
        return false;
    for (at++; at < length && is_digit(value[at]);)
        at++;
    return at == length;
}

/* --- fields --- */

struct seen {
    unsigned lengths;
    unsigned codings;
    unsigned hosts;
    const struct header_field *length;
    const struct header_field *coding;
    const struct header_field *host;
    const struct header_field *expect;
};

static bool is_token(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_token_char(bytes[i]))
            return false;
    return length > 0;
}

bool method_is_token(const char *method)
{
    return is_token(method, strlen(method));
}

static bool has_control(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_text_char(bytes[i]))
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

static void note_field(const struct header_field *field, struct seen *seen)
{
    if (is_named(field, "Content-Length")) {
        seen->lengths++;
        seen->length = field;
    } else if (is_named(field, "Transfer-Encoding")) {
        seen->codings++;
        seen->coding = field;
    } else if (is_named(field, "Host")) {
        seen->hosts++;
        seen->host = field;
    } else if (is_named(field, "Expect")) {
        seen->expect = field;
    }
}

static const char *check_field(const struct header_field *field)
{
    if (!is_token(field->name, field->name_length))
        return "a field name is not a token";
    if (has_control(field->value, field->value_length))
        return "a field value holds a control character";
    /* The library appends a folded line to the name of its field: "Content-Length:\r\n 5" arrives
     * as "Content-Length5". */
    if (begins_with(field, "Content-Length") && !is_named(field, "Content-Length"))
        return "a field name begins with Content-Length";
    if (begins_with(field, "Transfer-Encoding") && !is_named(field, "Transfer-Encoding"))
        return "a field name begins with Transfer-Encoding";
    return NULL;
}

/* Blanks after a value do not belong to it (RFC 9112 section 5). The library keeps them. */
static size_t trimmed_length(const struct header_field *field)
{
    size_t length = field->value_length;

    while (length > 0 && (field->value[length - 1] == ' ' || field->value[length - 1] == '\t'))
        length--;
    return length;
}

static const char *check_host(const struct seen *seen, bool http_1_0)
{
    if (seen->hosts > 1)
        return "Host is repeated";
    if (seen->hosts == 0)
        return http_1_0 ? NULL : "Host is missing";
    if (!host_is_valid(seen->host->value, trimmed_length(seen->host)))
        return "Host is not a host and an optional port";
    return NULL;
}

static const char *check_body(const struct seen *seen, bool http_1_0)
{
    if (seen->lengths > 1)
        return "Content-Length is repeated";
    if (seen->codings > 1)
        return "Transfer-Encoding is repeated";
    if (seen->lengths > 0 && seen->codings > 0)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (seen->codings == 0)
        return NULL;
    if (seen->coding->value_length != strlen("chunked") ||
        strcasecmp(seen->coding->value, "chunked") != 0)
        return "Transfer-Encoding is not chunked";
    /* A 1.0 proxy on the path may not know the field and may misread the chunks (RFC 9112 section
     * 6.1). */
    return http_1_0 ? "HTTP/1.0 has no Transfer-Encoding" : NULL;
}

/* 1*DIGIT. A length of 2^63 or more, which no file reaches, becomes FRAMING_LENGTH_MAX. */
static bool parse_length(const struct header_field *field, uint64_t *out_length)
{
    struct zt_text value = {field->value, field->value_length};
    uint64_t length;

    if (!zt_decimal_take(&value, &length) || value.length > 0)
        return false;
    *out_length = length <= INT64_MAX ? length : FRAMING_LENGTH_MAX;
    return true;
}

static const char *check_length(const struct seen *seen, uint64_t *out_length)
{
    if (seen->codings > 0)
        *out_length = FRAMING_CHUNKED;
    else if (seen->lengths > 0 && !parse_length(seen->length, out_length))
        return "Content-Length is not a length";
    return NULL;
}

/* Compares exactly as the library does: with a blank after the value, the library would not send a
 * 100, and the client would wait. */
static bool expects_other(const struct seen *seen)
{
    return seen->expect != NULL && strcasecmp(seen->expect->value, "100-continue") != 0;
}

void framing_check(const struct header_field *fields, unsigned count, bool http_1_0,
                   struct framing *out_framing)
{
    struct seen seen = {0};
    struct framing framing = {.verdict = FRAMING_SOUND};

    for (unsigned i = 0; i < count && framing.why == NULL; i++) {
        framing.why = check_field(&fields[i]);
        note_field(&fields[i], &seen);
    }
    if (framing.why == NULL)
        framing.why = check_body(&seen, http_1_0);
    if (framing.why == NULL)
        framing.why = check_host(&seen, http_1_0);
    if (framing.why == NULL)
        framing.why = check_length(&seen, &framing.body_length);
    if (framing.why != NULL) {
        framing.verdict = FRAMING_BROKEN;
    } else if (expects_other(&seen)) {
        framing.verdict = FRAMING_EXPECTATION;
        framing.why = "only 100-continue can be expected";
    }
    assert((framing.verdict == FRAMING_SOUND) == (framing.why == NULL));
    *out_framing = framing;
}

/* --- the header in memory (RFC 9112 sections 2.2, 3 and 5) --- */

struct walk {
    const struct header_block *block;
    size_t at;
};

static bool take_byte(struct walk *walk, char byte)
{
    if (walk->at >= walk->block->length || walk->block->bytes[walk->at] != byte)
        return false;
    walk->at++;
    return true;
}

/* Accepts CR LF, both of which the library has overwritten. */
static bool take_line_end(struct walk *walk)
{
    for (unsigned i = 0; i < 2; i++)
        if (!take_byte(walk, '\0'))
            return false;
    return true;
}

static bool take_text(struct walk *walk, const char *text, size_t length)
{
    assert(walk->at <= walk->block->length);
    if (text != walk->block->bytes + walk->at || length > walk->block->length - walk->at)
        return false;
    walk->at += length;
    return true;
}

static bool take_request_line(struct walk *walk)
{
    const struct header_block *block = walk->block;

    walk->at = strnlen(block->bytes, block->length);
    if (!take_byte(walk, '\0') || block->target_length > block->length - walk->at)
        return false;
    walk->at += block->target_length;
    return take_byte(walk, '\0') && take_text(walk, block->version, strlen(block->version)) &&
           take_line_end(walk);
}

static bool take_field(struct walk *walk, const struct header_field *field)
{
    if (!take_text(walk, field->name, field->name_length) || !take_byte(walk, '\0'))
        return false;
    while (take_byte(walk, ' ') || take_byte(walk, '\t'))
        ;
    return take_text(walk, field->value, field->value_length) && take_line_end(walk);
}

bool header_block_is_plain(const struct header_block *block, const struct header_field *fields,
                           unsigned count)
{
    struct walk walk = {block, 0};

    if (!take_request_line(&walk))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!take_field(&walk, &fields[i]))
            return false;
    return take_line_end(&walk) && walk.at == block->length;
}
