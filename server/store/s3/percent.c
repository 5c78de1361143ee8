/* RFC 3986 section 2. */
#include "store/s3/percent.h"

#include <string.h>

#include "base/percent.h"

bool percent_append(char *out, size_t size, size_t *used, struct zt_text text, bool keep_slash)
{
    size_t at = *used;

    for (size_t i = 0; i < text.length; i++) {
        char encoded[ZT_PERCENT_LENGTH];
        const char *end =
            zt_percent_write(encoded, (struct zt_text){text.bytes + i, 1}, keep_slash);
        const size_t length = (size_t)(end - encoded);

        if (size - at <= length) {
            out[*used] = '\0';
            return false;
        }
        memcpy(out + at, encoded, length);
        at += length;
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
        int value;

        if (text[i] != '%') {
            text[used++] = text[i];
            continue;
        }
        value = zt_percent_value((struct zt_text){text + i, *length - i});
        if (value <= 0) {
            text[used] = '\0';
            *length = used;
            return false;
        }
        text[used++] = (char)value;
        i += ZT_PERCENT_LENGTH - 1;
    }
    text[used] = '\0';
    *length = used;
    return true;
}
