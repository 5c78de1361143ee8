/* Request targets: origin-form, absolute-form and "*" (RFC 9112 section 3.2), percent-encoding (RFC
 * 3986 section 2.1). */
#include "http/fields/target.h"

#include <string.h>
#include <strings.h>

/* Where the path begins behind "http://authority"; NULL when the target is not in absolute form. */
static const char *skip_authority(const char *target)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t length = strlen(schemes[i]);

        if (strncasecmp(target, schemes[i], length) == 0) {
            size_t authority = strcspn(target + length, "/?#");

            return authority > 0 ? target + length + authority : NULL;
        }
    }
    return NULL;
}

enum target_form target_path(const char *target, struct zt_text *out_path)
{
    size_t length;

    if (strcmp(target, "*") == 0)
        return TARGET_ASTERISK;
    if (target[0] != '/') {
        target = skip_authority(target);
        if (target == NULL)
            return TARGET_INVALID;
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

static int hex_value(char digit)
{
    char lower;

    if (digit >= '0' && digit <= '9')
        return digit - '0';
    lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool path_decode(struct zt_text raw, char *buffer, size_t *out_length)
{
    size_t length = 0;

    for (size_t i = 0; i < raw.length; i++) {
        char byte = raw.bytes[i];

        if (byte == '%') {
            int high = i + 2 < raw.length ? hex_value(raw.bytes[i + 1]) : -1;
            int low = high >= 0 ? hex_value(raw.bytes[i + 2]) : -1;

            if (low < 0)
                return false;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        buffer[length++] = byte;
    }
    *out_length = length;
    return true;
}
