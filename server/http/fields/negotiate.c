/* Computes weights of Accept-Encoding and Accept, in thousandths to avoid rounding. */
#include "http/fields/negotiate.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "http/fields/grammar.h"

#define WEIGHT_MAX 1000
/* The field does not name the coding. */
#define UNNAMED (-1)

/* A part of a field's text. */
struct span {
    const char *at;
    size_t length;
};

/* --- members of a list, each with its weight --- */

static struct span take_token(const char **at)
{
    const char *first = *at;

    while (is_token_char(**at))
        ++*at;
    return (struct span){first, (size_t)(*at - first)};
}

static bool span_is(struct span span, const char *text)
{
    return span.length == strlen(text) && strncasecmp(span.at, text, span.length) == 0;
}

/* 0 or 1, and up to three digits after a point (RFC 9110 section 12.4.2). */
static bool read_weight(struct span text, unsigned *out_weight)
{
    unsigned weight = 0;
    unsigned unit = WEIGHT_MAX;

    if (text.length < 1 || text.length > strlen("0.000") || !is_one_of(text.at[0], "01") ||
        (text.length > 1 && text.at[1] != '.'))
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (i == 1)
            continue;
        if (!is_digit(text.at[i]))
            return false;
        weight += (unsigned)(text.at[i] - '0') * unit;
        unit /= 10;
    }
    if (weight > WEIGHT_MAX)
        return false;
    *out_weight = weight;
    return true;
}

/* A token or a quoted string (RFC 9110 section 5.6.6). */
static bool take_value(const char **at, struct span *out_value)
{
    const char *first = *at;

    if (**at != '"') {
        *out_value = take_token(at);
        return out_value->length > 0;
    }
    for (++*at; **at != '"'; ++*at) {
        if (**at == '\\')
            ++*at;
        if (**at == '\0')
            return false;
    }
    ++*at;
    *out_value = (struct span){first, (size_t)(*at - first)};
    return true;
}

/* Reads parameters up to the next comma. The parameter q is the weight; others are ignored. */
static bool take_parameters(const char **at, unsigned *out_weight)
{
    *out_weight = WEIGHT_MAX;
    for (skip_space(at); **at == ';'; skip_space(at)) {
        struct span name, value;

        ++*at;
        skip_space(at);
        name = take_token(at);
        if (name.length == 0 || **at != '=')
            return false;
        ++*at;
        if (!take_value(at, &value) || (span_is(name, "q") && !read_weight(value, out_weight)))
            return false;
    }
    return **at == ',' || **at == '\0';
}

/* Moves to the next comma outside a quoted string, or to the end. */
static void skip_member(const char **at)
{
    struct span quoted;

    while (**at != ',' && **at != '\0') {
        if (**at == '"') {
            if (!take_value(at, &quoted))
                return;
        } else {
            ++*at;
        }
    }
}

/* Finds the next well-formed member of the field: its name ("gzip", or "text/html" if slashed) and
 * its weight. */
static bool next_member(const char **at, bool slashed, struct span *out_name, unsigned *out_weight)
{
    while (**at != '\0') {
        const char *first;
        bool sound;

        *at += strspn(*at, " \t,");
        first = *at;
        sound = take_token(at).length > 0;
        if (slashed && sound) {
            sound = **at == '/';
            *at += sound;
            sound = sound && take_token(at).length > 0;
        }
        *out_name = (struct span){first, (size_t)(*at - first)};
        if (sound && take_parameters(at, out_weight))
            return true;
        skip_member(at);
    }
    return false;
}

/* --- codings --- */

static bool names_coding(struct span name, enum coding coding)
{
    if (coding == CODING_IDENTITY)
        return span_is(name, "identity");
    return span_is(name, coding_name(coding)) || (coding == CODING_GZIP && span_is(name, "x-gzip"));
}

/* If two members name the same coding, the first one counts. */
static int coding_weight(const char *field, enum coding coding)
{
    struct span name;
    unsigned weight;
    int star = UNNAMED;

    while (next_member(&field, false, &name, &weight)) {
        if (names_coding(name, coding))
            return (int)weight;
        if (star == UNNAMED && span_is(name, "*"))
            star = (int)weight;
    }
    return star;
}

const char *coding_name(enum coding coding)
{
    assert(coding != CODING_NONE);
    return coding == CODING_ZSTD ? "zstd" : coding == CODING_GZIP ? "gzip" : NULL;
}

/* Returns how much the client prefers a coding; 0 if it is not acceptable. Identity is acceptable
 * even if it is not named, but is then worth less than all named codings (RFC 9110 section
 * 12.5.3). */
static int coding_worth(const char *field, enum coding coding)
{
    int weight = coding_weight(field, coding);

    if (weight == UNNAMED)
        return coding == CODING_IDENTITY ? 1 : 0;
    return 2 * weight;
}

enum coding negotiate_coding(const char *accept_encoding, const enum coding *offered,
                             unsigned count)
{
    enum coding best = CODING_NONE;
    int best_worth = 0;

    for (unsigned i = 0; i < count; i++) {
        int worth;

        assert(offered[i] != CODING_NONE);
        worth = accept_encoding != NULL ? coding_worth(accept_encoding, offered[i])
                                        : offered[i] == CODING_IDENTITY;

        if (worth > best_worth) {
            best_worth = worth;
            best = offered[i];
        }
    }
    return best;
}

/* --- media types --- */

/* Returns how closely a media range matches a media type, from 0 (no match) to 3 (exact). */
static unsigned closeness(struct span range, const char *media_type)
{
    size_t type_length = strcspn(media_type, "/") + 1;

    if (span_is(range, media_type))
        return 3;
    if (range.length == type_length + 1 && range.at[type_length] == '*' &&
        strncasecmp(range.at, media_type, type_length) == 0)
        return 2;
    return span_is(range, "*/*") ? 1 : 0;
}

unsigned negotiate_media_type(const char *accept, const char *media_type, bool explicit_only)
{
    unsigned closest = explicit_only ? 2 : 0;
    unsigned result = 0;
    struct span range;
    unsigned weight;

    if (accept == NULL)
        return WEIGHT_MAX;
    while (next_member(&accept, true, &range, &weight)) {
        unsigned close = closeness(range, media_type);

        if (close > closest) {
            closest = close;
            result = weight;
        }
    }
    return result;
}
