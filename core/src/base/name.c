/* Normalisation of names by utf8proc. */
#include "base/name.h"

#include <assert.h>
#include <stdlib.h>
#include <utf8proc.h>

static bool is_ascii(struct zt_text name)
{
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.bytes[i] >= 0x80)
            return false;
    return true;
}

enum zt_status zt_name_compose(struct zt_text name, char **out_owned, struct zt_text *out_composed)
{
    utf8proc_uint8_t *composed = NULL;
    utf8proc_ssize_t length;

    *out_owned = NULL;
    *out_composed = name;
    if (is_ascii(name))
        return ZT_OK;
    length = utf8proc_map((const utf8proc_uint8_t *)name.bytes, (utf8proc_ssize_t)name.length,
                          &composed, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    assert(length != UTF8PROC_ERROR_INVALIDUTF8);
    if (length < 0)
        return ZT_NO_MEMORY;
    *out_owned = (char *)composed;
    *out_composed = (struct zt_text){(const char *)composed, (size_t)length};
    return ZT_OK;
}

enum zt_status zt_name_is_nfc(struct zt_text name, bool *out_is_nfc)
{
    struct zt_text composed;
    char *owned = NULL;
    enum zt_status status = zt_name_compose(name, &owned, &composed);

    if (status != ZT_OK)
        return status;
    *out_is_nfc = zt_text_equal(composed, name);
    free(owned);
    return ZT_OK;
}
