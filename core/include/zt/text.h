/* Borrowed text, and comparing texts. */
#ifndef ZT_TEXT_H
#define ZT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* A borrowed run of bytes. Text is UTF-8 and not terminated. bytes may be NULL if length is 0. */
struct zt_text {
    const char *bytes;
    size_t length;
};

/* The text of a C string, which must outlive it. */
static inline struct zt_text zt_text_from(const char *string)
{
    struct zt_text text = {string, strlen(string)};

    return text;
}

static inline bool zt_text_equal(struct zt_text a, struct zt_text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* Whether text equals a C string. */
static inline bool zt_text_is(struct zt_text text, const char *string)
{
    return zt_text_equal(text, zt_text_from(string));
}

static inline bool zt_text_starts_with(struct zt_text text, struct zt_text prefix)
{
    return text.length >= prefix.length &&
           (prefix.length == 0 || memcmp(text.bytes, prefix.bytes, prefix.length) == 0);
}

static inline bool zt_text_ends_with(struct zt_text text, struct zt_text suffix)
{
    return text.length >= suffix.length &&
           (suffix.length == 0 ||
            memcmp(text.bytes + (text.length - suffix.length), suffix.bytes, suffix.length) == 0);
}

/* The same without regard to the case of ASCII letters, as extensions of files are compared. */
static inline bool zt_text_ends_like(struct zt_text text, struct zt_text suffix)
{
    return text.length >= suffix.length &&
           (suffix.length == 0 || strncasecmp(text.bytes + (text.length - suffix.length),
                                              suffix.bytes, suffix.length) == 0);
}

/* Compares bytewise, as objects and components are ordered in a model; a prefix comes before any
 * longer text. Returns less than, equal to or greater than 0. */
static inline int zt_text_compare(struct zt_text a, struct zt_text b)
{
    size_t shared = a.length < b.length ? a.length : b.length;
    int order = shared > 0 ? memcmp(a.bytes, b.bytes, shared) : 0;

    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
