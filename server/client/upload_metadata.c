#include "client/upload_metadata.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Base64, RFC 4648 section 4. */
static void encode(const char *text, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t length = strlen(text);

    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = (uint32_t)(uint8_t)text[i] << 16;

        if (i + 1 < length)
            bits |= (uint32_t)(uint8_t)text[i + 1] << 8;
        if (i + 2 < length)
            bits |= (uint8_t)text[i + 2];
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = i + 1 < length ? digits[bits >> 6 & 63] : '=';
        *out++ = i + 2 < length ? digits[bits & 63] : '=';
    }
    *out = '\0';
}

void upload_metadata_write(const char *name, char out_field[UPLOAD_METADATA_SIZE])
{
    assert(strlen(name) < WEB_TARGET_SIZE);
    strcpy(out_field, "model ");
    encode(name, out_field + strlen(out_field));
}
