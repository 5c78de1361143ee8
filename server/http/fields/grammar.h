/* The small rules of RFC 9110 section 5.6 that several fields are made of. */
#ifndef HTTP_FIELDS_GRAMMAR_H
#define HTTP_FIELDS_GRAMMAR_H

#include <stdbool.h>
#include <string.h>

#include "base/hex.h"

static inline bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static inline bool is_alpha(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

static inline bool is_one_of(char byte, const char *set)
{
    return byte != '\0' && strchr(set, byte) != NULL;
}

/* tchar (section 5.6.2). */
static inline bool is_token_char(char byte)
{
    return is_digit(byte) || is_alpha(byte) || is_one_of(byte, "!#$%&'*+-.^_`|~");
}

/* OWS (section 5.6.3). */
static inline void skip_space(const char **at)
{
    *at += strspn(*at, " \t");
}

#endif
