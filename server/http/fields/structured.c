/* Structured fields (RFC 8941 section 4.2): a strict parser of dictionaries. It also parses unused
 * parts, such as parameters, because a field that fails to parse must be ignored as a whole. */
#include "http/fields/structured.h"

#include <string.h>

#include "base/base64.h"
#include "base/decimal.h"
#include "http/fields/grammar.h"

/* The maximum digits of an integer, and of a decimal before and after the point (section 4.2.4). */
#define INTEGER_DIGITS   15
#define DECIMAL_WHOLE    12
#define DECIMAL_FRACTION 3

#define DIGITS "0123456789"

static bool is_lower(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool take_key(const char **at, struct zt_text *out_key)
{
    const char *end = *at;

    if (!is_lower(*end) && *end != '*')
        return false;
    while (is_lower(*end) || is_digit(*end) || is_one_of(*end, "_-.*"))
        end++;
    *out_key = (struct zt_text){*at, (size_t)(end - *at)};
    *at = end;
    return true;
}

static bool take_number(const char **at, struct structured_member *member)
{
    bool negative = **at == '-';
    const char *digits = *at + (negative ? 1 : 0);
    size_t whole = strspn(digits, DIGITS);
    uint64_t integer;
    size_t fraction;

    if (whole > INTEGER_DIGITS ||
        !zt_decimal_read((struct zt_text){digits, whole}, UINT64_MAX, &integer))
        return false;
    *at = digits + whole;
    member->kind = STRUCTURED_INTEGER;
    member->integer = negative ? -(int64_t)integer : (int64_t)integer;
    if (**at != '.')
        return true;
    fraction = strspn(*at + 1, DIGITS);
    *at += 1 + fraction;
    member->kind = STRUCTURED_DECIMAL;
    return whole <= DECIMAL_WHOLE && fraction >= 1 && fraction <= DECIMAL_FRACTION;
}

static bool take_string(const char **at)
{
    for (const char *text = *at + 1; *text >= 0x20 && *text < 0x7F; text++) {
        if (*text == '"') {
            *at = text + 1;
            return true;
        }
        if (*text == '\\' && *++text != '"' && *text != '\\')
            return false;
    }
    return false;
}

static bool take_bytes(const char **at, struct structured_member *member)
{
    const char *begin = *at + 1;
    const char *end = begin;

    while (is_alpha(*end) || is_digit(*end) || is_one_of(*end, "+/="))
        end++;
    member->kind = STRUCTURED_BYTES;
    member->text = (struct zt_text){begin, (size_t)(end - begin)};
    if (*end != ':')
        return false;
    *at = end + 1;
    return true;
}

static bool take_boolean(const char **at)
{
    bool good = (*at)[1] == '0' || (*at)[1] == '1';

    *at += good ? 2 : 0;
    return good;
}

static void take_token(const char **at)
{
    while (is_alpha(**at) || is_digit(**at) || is_one_of(**at, "!#$%&'*+-.^_`|~:/"))
        (*at)++;
}

static bool take_item(const char **at, struct structured_member *member)
{
    char first = **at;

    if (is_digit(first) || first == '-')
        return take_number(at, member);
    if (first == ':')
        return take_bytes(at, member);
    if (first == '"') {
        member->kind = STRUCTURED_STRING;
        return take_string(at);
    }
    if (first == '?') {
        member->kind = STRUCTURED_BOOLEAN;
        return take_boolean(at);
    }
    if (is_alpha(first) || first == '*') {
        member->kind = STRUCTURED_TOKEN;
        take_token(at);
        return true;
    }
    return false;
}

/* ";key=value", repeated any number of times. */
static bool take_parameters(const char **at)
{
    while (**at == ';') {
        struct zt_text key;
        struct structured_member ignored;

        (*at)++;
        *at += strspn(*at, " ");
        if (!take_key(at, &key))
            return false;
        if (**at == '=') {
            (*at)++;
            if (!take_item(at, &ignored))
                return false;
        }
    }
    return true;
}

static bool take_list(const char **at)
{
    (*at)++;
    for (;;) {
        struct structured_member ignored;

        *at += strspn(*at, " ");
        if (**at == ')') {
            (*at)++;
            return true;
        }
        if (!take_item(at, &ignored) || !take_parameters(at) || (**at != ' ' && **at != ')'))
            return false;
    }
}

static bool take_value(const char **at, struct structured_member *member)
{
    if (**at == '(') {
        member->kind = STRUCTURED_LIST;
        return take_list(at);
    }
    return take_item(at, member);
}

static bool take_member(const char **at, struct structured_member *member)
{
    /* A key without a value is the boolean true. */
    *member = (struct structured_member){.kind = STRUCTURED_BOOLEAN};
    if (!take_key(at, &member->key))
        return false;
    if (**at == '=') {
        (*at)++;
        if (!take_value(at, member))
            return false;
    }
    return take_parameters(at);
}

void structured_begin(struct structured_reader *reader, const char *field)
{
    *reader = (struct structured_reader){.at = field + strspn(field, " ")};
}

enum structured_answer structured_next(struct structured_reader *reader,
                                       struct structured_member *out_member)
{
    struct structured_member member;

    if (*reader->at == '\0')
        return STRUCTURED_END;
    if (reader->begun) {
        if (*reader->at != ',')
            return STRUCTURED_MALFORMED;
        reader->at++;
        reader->at += strspn(reader->at, " \t");
    }
    if (!take_member(&reader->at, &member))
        return STRUCTURED_MALFORMED;
    reader->begun = true;
    reader->at += strspn(reader->at, " \t");
    *out_member = member;
    return STRUCTURED_MEMBER;
}

bool structured_decode(struct zt_text base64, uint8_t *out_bytes, size_t length)
{
    const size_t digits = (length * 8 + 5) / 6;
    const size_t padding = (4 - digits % 4) % 4;
    size_t decoded;

    if (base64.length == digits + padding && padding > 0 &&
        memcmp(base64.bytes + digits, "==", padding) == 0)
        base64.length = digits;
    return base64.length == digits &&
           zt_base64_read(base64, ZT_BASE64, out_bytes, length, &decoded);
}
