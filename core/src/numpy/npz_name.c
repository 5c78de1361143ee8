/* Names of arrays: without ".npy", percent-encoding undone. */
#include "numpy/npz_name.h"

#include <assert.h>
#include <string.h>

#include "base/percent.h"

/* The character that a %XX sequence at bytes encodes (left bytes remain), or -1 if there is no such
 * sequence. Decodes only the characters that this library encodes, so that other percent signs in
 * names written by NumPy stay as they are. */
static int decoded_at(const char *bytes, size_t left)
{
    const int character = zt_percent_value((struct zt_text){bytes, left});

    if (character < 0)
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
    assert(length <= name.length);
    *out_name = (struct zt_text){to, length};
    return ZT_OK;
}

bool npz_name_promises_array(struct zt_text member)
{
    return zt_text_ends_with(member, zt_text_from(NPZ_SUFFIX));
}

enum zt_status npz_name_read(struct zt_text member, struct zt_arena *arena,
                             struct zt_text *out_name, struct zt_error *error)
{
    struct zt_text name = member;

    if (npz_name_promises_array(member))
        name.length -= strlen(NPZ_SUFFIX);
    if (has_encoded(name))
        return decode(name, arena, out_name, error);
    *out_name = name;
    return ZT_OK;
}
