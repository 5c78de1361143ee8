/* Small grammar rules of RFC 9110 section 5.6 that several fields share. */
#ifndef HTTP_FIELDS_GRAMMAR_H
#define HTTP_FIELDS_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>
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

/* tchar (section 5.6.2): digits, letters and !#$%&'*+-.^_`|~, one bit each. */
static inline bool is_token_char(char byte)
{
    static const uint32_t tokens[] = {0, 0x03FF6CFA, 0xC7FFFFFE, 0x57FFFFFF, 0, 0, 0, 0};
    const unsigned index = (unsigned char)byte;

    return (tokens[index / 32] >> index % 32 & 1) != 0;
}

/* CTL of RFC 5234, which includes CR, LF, tab, NUL and DEL. */
static inline bool is_control_char(char byte)
{
    return (unsigned char)byte < 0x20 || byte == 0x7F;
}

/* A byte of a field value (section 5.5) or between quotes. */
static inline bool is_text_char(char byte)
{
    return !is_control_char(byte) || byte == '\t';
}

/* OWS (section 5.6.3). */
static inline void skip_space(const char **at)
{
    *at += strspn(*at, " \t");
}

#endif
