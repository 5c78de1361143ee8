/* Unicode normalisation of names (Unicode Standard Annex 15), by utf8proc. */
#include "name.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static bool is_ascii(struct zt_text name)
{
    for (size_t i = 0; i < name.length; i++) {
        if ((unsigned char)name.bytes[i] >= 0x80)
            return false;
    }
    return true;
}

enum zt_status zt_name_is_nfc(struct zt_text name, bool *out_is_nfc)
{
    utf8proc_uint8_t *composed = NULL;

    if (is_ascii(name)) {
        *out_is_nfc = true;
        return ZT_OK;
    }
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)name.bytes, (utf8proc_ssize_t)name.length,
                                           &composed, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (length == UTF8PROC_ERROR_NOMEM)
        return ZT_NO_MEMORY;
    *out_is_nfc = length >= 0 && (size_t)length == name.length && memcmp(composed, name.bytes, name.length) == 0;
    free(composed);
    return ZT_OK;
}
