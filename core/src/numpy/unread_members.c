/* Collects members that are not read, and writes them as a CBOR map sorted by name. */
#include "numpy/unread_members.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "cbor/cbor_write.h"
#include "model/name_sort.h"
#include "zt/utf8.h"

#define ATTRIBUTE "unread"
/* So that the attribute stays within the arena's budget: four bytes for each byte of the
 * directory, in which a member takes 46 and its name. */
#define REASON_MAX_BYTES 120

/* The layout that zt_names_sort requires. */
struct unread_member {
    const char *name;
    uint32_t name_length;
    uint32_t reason_length;
    size_t reason_at;
};

enum zt_status unread_members_add(struct unread_members *members, struct zt_text name,
                                  const char *reason, struct zt_error *error)
{
    const size_t length = strnlen(reason, REASON_MAX_BYTES);

    assert(name.length <= UINT32_MAX);
    if (zt_array_reserve(&members->list, &members->capacity, members->count + 1,
                         sizeof(*members->list), UINT32_MAX) != ZT_OK)
        return zt_fail_memory(error, "members that are not read");
    members->list[members->count++] = (struct unread_member){
        name.bytes, (uint32_t)name.length, (uint32_t)length, members->reasons.length};
    zt_buffer_append(&members->reasons, reason, length);
    return members->reasons.failed ? zt_fail_memory(error, "members that are not read") : ZT_OK;
}

/* Writes a name; bytes that are not UTF-8 become \xNN. */
static void put_name(struct zt_buffer *map, struct zt_text name)
{
    struct zt_buffer escaped = {0};

    for (size_t i = 0; i < name.length;) {
        const size_t step = zt_utf8_character(name.bytes + i, name.length - i);
        char code[4] = "\\x";

        zt_hex_put(code + 2, name.bytes + i, 1, ZT_HEX_LOWER);
        zt_buffer_append(&escaped, step > 0 ? name.bytes + i : code,
                         step > 0 ? step : sizeof(code));
        i += step > 0 ? step : 1;
    }
    zt_cbor_put_text(map, (struct zt_text){(const char *)escaped.bytes, escaped.length});
    map->failed = map->failed || escaped.failed;
    zt_buffer_free(&escaped);
}

/* Whether the member before has the same name. */
static bool is_repeated(const struct zt_named_array *names, size_t place)
{
    return place > 0 && zt_text_equal(zt_names_at(names, place - 1), zt_names_at(names, place));
}

static void put_members(const struct unread_members *members, const struct zt_named_array *names,
                        struct zt_buffer *map)
{
    uint64_t count = 0;

    for (size_t i = 0; i < members->count; i++)
        count += !is_repeated(names, i);
    zt_cbor_put_map(map, 1);
    zt_cbor_put_string(map, ATTRIBUTE);
    zt_cbor_put_map(map, count);
    for (size_t i = 0; i < members->count; i++) {
        const struct unread_member *member = &members->list[i];

        if (is_repeated(names, i))
            continue;
        put_name(map, zt_names_at(names, i));
        zt_cbor_put_text(map,
                         (struct zt_text){(const char *)members->reasons.bytes + member->reason_at,
                                          member->reason_length});
    }
}

enum zt_status unread_members_keep(struct unread_members *members, struct zt_arena *arena,
                                   struct zt_text *out_attributes, struct zt_error *error)
{
    const struct zt_named_array names = {members->list, members->count, sizeof(*members->list),
                                         offsetof(struct unread_member, name_length)};
    struct zt_buffer map = {0};
    void *held;
    enum zt_status status;

    if (members->count == 0)
        return ZT_OK;
    status = zt_names_sort(&names, error);
    if (status != ZT_OK)
        return status;
    put_members(members, &names, &map);
    status = map.failed ? zt_fail_memory(error, "members that are not read")
                        : zt_arena_take(arena, map.length, &held, error);
    if (status == ZT_OK) {
        memcpy(held, map.bytes, map.length);
        *out_attributes = (struct zt_text){held, map.length};
    }
    zt_buffer_free(&map);
    return status;
}

void unread_members_free(struct unread_members *members)
{
    free(members->list);
    zt_buffer_free(&members->reasons);
    memset(members, 0, sizeof(*members));
}
