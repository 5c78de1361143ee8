/* Names of NPZ entries. Only those characters are decoded that writers of archives encode: a name
 * that NumPy wrote and that happens to hold another percent sign stays as it is. */
#include "formats/npz_name.h"

#include <string.h>

#include "zt/utf8.h"

bool npz_name_ends(const struct zip_entry *entry, const char *suffix)
{
    size_t length = strlen(suffix);

    return entry->name.length >= length &&
           memcmp(entry->name.bytes + entry->name.length - length, suffix, length) == 0;
}

static int hex_value(char digit)
{
    const char *digits = "0123456789ABCDEF0123456789abcdef";
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;

    return at != NULL ? (int)((at - digits) % 16) : -1;
}

/* The character that %XX at bytes (left of them remain) stands for, or -1 when it stands for
 * itself. */
static int decoded_at(const char *bytes, size_t left)
{
    int high = left >= 3 && bytes[0] == '%' ? hex_value(bytes[1]) : -1;
    int low = high >= 0 ? hex_value(bytes[2]) : -1;
    int character = high * 16 + low;

    if (high < 0 || low < 0)
        return -1;
    return character < 0x20 || character == 0x7F || strchr("%/\\:", character) != NULL ? character
                                                                                       : -1;
}

static bool has_encoded(struct zt_text name)
{
    for (size_t i = 0; i < name.length; i++)
        if (decoded_at(name.bytes + i, name.length - i) >= 0)
            return true;
    return false;
}

static enum zt_status decode(struct zt_text name, struct zt_arena *arena, struct zt_text *out_name,
                             struct zt_error *error)
{
    void *held;
    size_t length = 0;
    enum zt_status status = zt_arena_take(arena, name.length, &held, error);
    char *to;

    if (status != ZT_OK)
        return status;
    to = held;
    for (size_t i = 0; i < name.length; i++) {
        int character = decoded_at(name.bytes + i, name.length - i);

        to[length++] = character >= 0 ? (char)character : name.bytes[i];
        i += character >= 0 ? 2 : 0;
    }
    *out_name = (struct zt_text){to, length};
    return ZT_OK;
}

enum zt_status npz_name_read(const struct zip_entry *entry, struct zt_arena *arena,
                             struct zt_text *out_name, struct zt_error *error)
{
    struct zt_text name = {entry->name.bytes, entry->name.length - strlen(NPZ_SUFFIX)};
    enum zt_status status = ZT_OK;

    if (name.length > 0 && has_encoded(name))
        status = decode(name, arena, &name, error);
    if (status != ZT_OK)
        return status;
    if (name.length == 0 || memchr(name.bytes, 0, name.length) != NULL ||
        !zt_utf8_valid(name.bytes, name.length))
        return zt_fail(error, ZT_INVALID, "npz §Names Name", entry->offset,
                       "the name of an array is empty, holds a NUL or is not UTF-8");
    *out_name = name;
    return ZT_OK;
}
