/* RFC 3986 section 2. */
#include "store/s3/percent.h"

#include <string.h>

#include "base/hex.h"

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

bool percent_append(char *out, size_t size, size_t *used, struct zt_text text, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t at = *used;

    for (size_t i = 0; i < text.length; i++) {
        const unsigned char c = (unsigned char)text.bytes[i];
        const bool stays = is_unreserved((char)c) || (c == '/' && keep_slash);

        if (size - at <= (stays ? 1 : 3)) {
            out[*used] = '\0';
            return false;
        }
        if (stays) {
            out[at++] = (char)c;
            continue;
        }
        out[at++] = '%';
        out[at++] = digits[c >> 4];
        out[at++] = digits[c & 15];
    }
    out[at] = '\0';
    *used = at;
    return true;
}

bool percent_append_plain(char *out, size_t size, size_t *used, const char *text)
{
    const size_t length = strlen(text);

    if (size - *used <= length)
        return false;
    memcpy(out + *used, text, length + 1);
    *used += length;
    return true;
}

bool percent_decode_key(char *text, size_t *length)
{
    size_t used = 0;

    for (size_t i = 0; i < *length; i++) {
        int high;
        int low;

        if (text[i] != '%') {
            text[used++] = text[i];
            continue;
        }
        high = i + 2 < *length ? zt_hex_value(text[i + 1]) : -1;
        low = high >= 0 ? zt_hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            text[used] = '\0';
            *length = used;
            return false;
        }
        text[used++] = (char)(high << 4 | low);
        i += 2;
    }
    text[used] = '\0';
    *length = used;
    return true;
}
