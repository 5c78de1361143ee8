/* Request targets: origin-form, absolute-form and "*" (RFC 9112 section 3.2); the query (RFC 3986
 * section 3.4); and percent-encoding (RFC 3986 section 2.1), read and written. */
#include "http/fields/uri.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/percent.h"

/* --- the path --- */

/* Finds the text between "http://" and the path. Returns false if the target is not in absolute
 * form. */
static bool find_authority(const char *target, struct zt_text *out_authority)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        const size_t length = strlen(schemes[i]);

        if (strncasecmp(target, schemes[i], length) != 0)
            continue;
        *out_authority = (struct zt_text){target + length, strcspn(target + length, "/?#")};
        return out_authority->length > 0;
    }
    return false;
}

bool target_host(const char *target, struct zt_text *out_host)
{
    struct zt_text authority;
    const char *at;

    if (!find_authority(target, &authority))
        return false;
    at = memrchr(authority.bytes, '@', authority.length);
    if (at != NULL) {
        authority.length -= (size_t)(at + 1 - authority.bytes);
        authority.bytes = at + 1;
    }
    *out_host = authority;
    return true;
}

enum target_form target_path(const char *target, struct zt_text *out_path)
{
    struct zt_text authority;
    size_t length;

    if (strcmp(target, "*") == 0)
        return TARGET_ASTERISK;
    if (target[0] != '/') {
        if (!find_authority(target, &authority))
            return TARGET_INVALID;
        target = authority.bytes + authority.length;
    }
    length = strcspn(target, "?");
    /* "http://host" and "http://host?query" mean the root. */
    *out_path = target[0] == '/' ? (struct zt_text){target, length} : (struct zt_text){"/", 1};
    return TARGET_PATH;
}

bool path_has_empty_segment(struct zt_text path)
{
    const char *end = path.bytes + path.length;

    for (const char *at = path.bytes; at < end; at++) {
        at = memchr(at, '/', (size_t)(end - at));
        if (at == NULL)
            return false;
        if (at + 1 < end && at[1] == '/')
            return true;
    }
    return false;
}

bool path_has_encoded_slash(struct zt_text raw)
{
    for (size_t i = 0; i + 2 < raw.length; i++)
        if (raw.bytes[i] == '%' && raw.bytes[i + 1] == '2' && (raw.bytes[i + 2] | 0x20) == 'f')
            return true;
    return false;
}

/* Decodes the byte at *at and moves *at past it. Returns false if it is a malformed escape. */
static bool take_byte(struct zt_text raw, size_t *at, char *out_byte)
{
    int value;

    assert(*at < raw.length);
    if (raw.bytes[*at] != '%') {
        *out_byte = raw.bytes[(*at)++];
        return true;
    }
    value = zt_percent_value((struct zt_text){raw.bytes + *at, raw.length - *at});
    if (value < 0)
        return false;
    *at += ZT_PERCENT_LENGTH;
    *out_byte = (char)value;
    return true;
}

bool percent_decode(struct zt_text raw, char *buffer, size_t *out_length)
{
    size_t length = 0;

    for (size_t at = 0; at < raw.length;)
        if (!take_byte(raw, &at, &buffer[length++]))
            return false;
    assert(length <= raw.length);
    *out_length = length;
    return true;
}

size_t percent_decode_where_escaped(struct zt_text raw, char *buffer)
{
    size_t length = 0;

    for (size_t at = 0; at < raw.length; length++)
        if (!take_byte(raw, &at, &buffer[length]))
            buffer[length] = raw.bytes[at++];
    return length;
}

struct zt_text path_below(struct zt_text path, const char *base_path)
{
    const size_t length = strlen(base_path);

    if (length == 0 || path.length < length || memcmp(path.bytes, base_path, length) != 0)
        return path;
    if (path.length == length)
        return (struct zt_text){"/", 1};
    return path.bytes[length] == '/' ? (struct zt_text){path.bytes + length, path.length - length}
                                     : path;
}

/* --- the query --- */

/* Returns true if a raw name decodes to name. Clients need not escape ordinary characters, but
 * may. */
static bool name_is(struct zt_text raw, const char *name)
{
    char byte;

    for (size_t at = 0; at < raw.length; name++)
        if (*name == '\0' || !take_byte(raw, &at, &byte) || byte != *name)
            return false;
    return *name == '\0';
}

const char *query_begin(const char *target)
{
    return strchr(target, '?');
}

bool query_next(const char **position, const char *name, struct zt_text *out_raw)
{
    while (*position != NULL) {
        const char *pair = *position + 1;
        const size_t length = strcspn(pair, "&");
        const size_t name_length = strcspn(pair, "&=");
        const size_t value_at = name_length < length ? name_length + 1 : length;

        *position = pair[length] == '&' ? pair + length : NULL;
        if (name_is((struct zt_text){pair, name_length}, name)) {
            *out_raw = (struct zt_text){pair + value_at, length - value_at};
            return true;
        }
    }
    return false;
}

bool query_find(const char *target, const char *name, unsigned nth, struct zt_text *out_raw)
{
    const char *position = query_begin(target);

    while (query_next(&position, name, out_raw))
        if (nth-- == 0)
            return true;
    return false;
}

/* Returns true if one of the words equals the decoded name. */
static bool is_among(struct zt_text raw, const char *words)
{
    char byte;

    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        size_t matched = 0;
        size_t at = 0;

        while (at < raw.length && matched < length && take_byte(raw, &at, &byte) &&
               byte == words[matched])
            matched++;
        if (at == raw.length && matched == length)
            return true;
        words += length + (words[length] == ' ');
    }
    return false;
}

bool query_find_other(const char *target, const char *known, struct zt_text *out_raw)
{
    const char *at = strchr(target, '?');

    while (at != NULL) {
        const char *pair = at + 1;
        const size_t length = strcspn(pair, "&");
        const struct zt_text name = {pair, strcspn(pair, "&=")};

        at = pair[length] == '&' ? pair + length : NULL;
        if (length > 0 && !is_among(name, known)) {
            *out_raw = name;
            return true;
        }
    }
    return false;
}

/* --- building paths, in a buffer that is reused for many names --- */

void href_init(struct href *href)
{
    *href = (struct href){0};
}

void href_begin(struct href *href, const char *base_path)
{
    href_init(href);
    href_plain(href, base_path);
}

void href_free(struct href *href)
{
    free(href->text);
    href_init(href);
}

void href_cut(struct href *href, size_t length)
{
    if (!href->failed && length < href->length) {
        href->length = length;
        href->text[length] = '\0';
    }
}

/* Makes room for length more bytes and the NUL. */
static bool reserve(struct href *href, size_t length)
{
    if (href->failed || length > SIZE_MAX - 1 - href->length ||
        zt_array_reserve(&href->text, &href->capacity, href->length + length + 1, 1, SIZE_MAX) !=
            ZT_OK)
        href->failed = true;
    return !href->failed;
}

void href_plain(struct href *href, const char *text)
{
    size_t length = strlen(text);

    if (reserve(href, length)) {
        memcpy(href->text + href->length, text, length + 1);
        href->length += length;
    }
}

/* Returns true for "." and "..": clients would treat such a name as a dot segment, so its dots are
 * escaped. */
static bool is_dots(struct zt_text text)
{
    return (text.length == 1 || text.length == 2) && memcmp(text.bytes, "..", text.length) == 0;
}

static void append(struct href *href, struct zt_text text, bool keep_slash)
{
    if (text.length > SIZE_MAX / ZT_PERCENT_LENGTH ||
        !reserve(href, text.length * ZT_PERCENT_LENGTH)) {
        href->failed = true;
        return;
    }
    href->length =
        (size_t)(zt_percent_write(href->text + href->length, text, keep_slash) - href->text);
    assert(href->length < href->capacity);
    href->text[href->length] = '\0';
}

void href_segment(struct href *href, struct zt_text name)
{
    if (is_dots(name))
        href_plain(href, name.length == 1 ? "%2E" : "%2E%2E");
    else
        append(href, name, false);
}

void href_path(struct href *href, struct zt_text path)
{
    append(href, path, true);
}

void href_model(struct href *href, struct zt_text name)
{
    href_plain(href, "/v1/models/");
    href_segment(href, name);
}
