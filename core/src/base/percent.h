/* Percent-encoding (RFC 3986 section 2.1). */
#ifndef ZT_BASE_PERCENT_H
#define ZT_BASE_PERCENT_H

#include "base/hex.h"

/* The bytes that one encoded byte takes. */
#define ZT_PERCENT_LENGTH 3

/* Returns true for a character that needs no escape anywhere in a URI (section 2.3). isalnum would
 * depend on the locale. */
static inline bool zt_is_unreserved(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* Writes "%2F" for one byte and returns what follows it; no NUL. */
static inline char *zt_percent_put(char *at, char byte)
{
    *at = '%';
    return zt_hex_put(at + 1, &byte, 1, ZT_HEX_UPPER);
}

/* Writes a text with every byte escaped that is not unreserved; with keep_slash, '/' stays. Returns
 * what follows it; no NUL. There must be room for ZT_PERCENT_LENGTH times its bytes. */
static inline char *zt_percent_write(char *at, struct zt_text text, bool keep_slash)
{
    for (size_t i = 0; i < text.length; i++)
        if (zt_is_unreserved(text.bytes[i]) || (keep_slash && text.bytes[i] == '/'))
            *at++ = text.bytes[i];
        else
            at = zt_percent_put(at, text.bytes[i]);
    return at;
}

/* The byte that "%2F" or "%2f" at the front of the text stands for; -1 if it begins otherwise. */
static inline int zt_percent_value(struct zt_text text)
{
    uint8_t byte;

    return text.length >= ZT_PERCENT_LENGTH && text.bytes[0] == '%' &&
                   zt_hex_read((struct zt_text){text.bytes + 1, 2}, &byte, 1)
               ? byte
               : -1;
}

#endif
