/* Walking zTensor 2's manifest: maps with named fields, maps from names, texts.
 *
 * Each map is a table of its fields; what the table does not name is skipped, after the CBOR reader
 * checked it. */
#include "formats/zt2_walk.h"

#include <string.h>

#define SCHEMA "zt2 §3 Schema"
#define NAME   "zt2 §3 Name"

enum zt_status zt2_refuse(struct zt2_walk *walk, const struct zt_cbor_item *value,
                          const char *message)
{
    return zt_fail(walk->error, ZT_INVALID, SCHEMA, value->offset, "%s", message);
}

void zt2_name_failure(const struct zt2_walk *walk, bool in_part)
{
    struct zt_text part = {"", 0};

    if (walk->error == NULL || walk->error->has_object)
        return;
    if (in_part)
        part = zt_component_name(walk->part);
    zt_error_at(walk->error, zt_object_name(walk->object), part);
}

/* --- maps --- */

static const struct zt2_field *find_field(const struct zt2_field *fields, unsigned count,
                                          const struct zt_cbor_item *key)
{
    for (unsigned i = 0; i < count && key->kind == ZT_CBOR_TEXT; i++)
        if (strlen(fields[i].key) == key->value &&
            memcmp(fields[i].key, key->bytes, key->value) == 0)
            return &fields[i];
    return NULL;
}

static enum zt_status check_required(struct zt2_walk *walk, const struct zt_cbor_item *map,
                                     const struct zt2_field *fields, unsigned count, unsigned seen)
{
    for (unsigned i = 0; i < count; i++) {
        if (fields[i].required && !(seen & (1u << i)))
            return zt_fail(walk->error, ZT_INVALID, SCHEMA, map->offset, "\"%s\" is missing",
                           fields[i].key);
    }
    return ZT_OK;
}

enum zt_status zt2_read_fields(struct zt2_walk *walk, const struct zt_cbor_item *map,
                               const struct zt2_field *fields, unsigned count)
{
    struct zt_cbor_walk pairs;
    struct zt_cbor_item key;
    struct zt_cbor_item value;
    unsigned seen = 0;
    bool more;
    enum zt_status status;

    if (map->kind != ZT_CBOR_MAP)
        return zt2_refuse(walk, map, "a map is needed here");
    status = zt_cbor_enter(&walk->reader, map, &pairs, walk->error);
    while (status == ZT_OK) {
        const struct zt2_field *field;

        status = zt_cbor_more(&walk->reader, &pairs, &more, walk->error);
        if (status != ZT_OK || !more)
            break;
        status = zt_cbor_key(&walk->reader, &pairs, &key, walk->error);
        if (status != ZT_OK)
            break;
        field = find_field(fields, count, &key);
        if (field == NULL) {
            status = zt_cbor_skip(&walk->reader, walk->error);
            continue;
        }
        seen |= 1u << (field - fields);
        status = zt_cbor_next(&walk->reader, &value, walk->error);
        if (status == ZT_OK)
            status = field->read(walk, &value);
    }
    return status == ZT_OK ? check_required(walk, map, fields, count, seen) : status;
}

enum zt_status zt2_read_entries(struct zt2_walk *walk, const struct zt_cbor_item *map,
                                enum zt_status (*read)(struct zt2_walk *walk,
                                                       const struct zt_cbor_item *key))
{
    struct zt_cbor_walk pairs;
    struct zt_cbor_item key;
    bool more;
    enum zt_status status;

    if (map->kind != ZT_CBOR_MAP)
        return zt2_refuse(walk, map, "a map is needed here");
    status = zt_cbor_enter(&walk->reader, map, &pairs, walk->error);
    while (status == ZT_OK) {
        status = zt_cbor_more(&walk->reader, &pairs, &more, walk->error);
        if (status != ZT_OK || !more)
            break;
        status = zt_cbor_key(&walk->reader, &pairs, &key, walk->error);
        if (status == ZT_OK && key.kind != ZT_CBOR_TEXT)
            status = zt2_refuse(walk, &key, "a key that is not text");
        if (status == ZT_OK)
            status = read(walk, &key);
    }
    return status;
}

enum zt_status zt2_check_name(struct zt2_walk *walk, const struct zt_cbor_item *name)
{
    if (name->value == 0 || name->value > ZT2_NAME_MAX)
        return zt_fail(walk->error, ZT_INVALID, NAME, name->offset, "a name has 1 to %d bytes",
                       ZT2_NAME_MAX);
    if (memchr(name->bytes, '\0', name->value) != NULL)
        return zt_fail(walk->error, ZT_INVALID, NAME, name->offset, "a name has a NUL character");
    return ZT_OK;
}

/* --- texts --- */

enum zt_status zt2_read_text(struct zt2_walk *walk, const struct zt_cbor_item *value,
                             const char **out_text, uint32_t *out_length)
{
    if (value->kind != ZT_CBOR_TEXT)
        return zt2_refuse(walk, value, "text is needed here");
    *out_text = (const char *)value->bytes;
    *out_length = (uint32_t)value->value; /* a manifest has at most 1 GiB */
    return ZT_OK;
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* "algorithm:hex" in lower case; which algorithms there are is not the container's matter. */
static bool is_digest(const char *text, size_t length)
{
    size_t colon = 0;

    while (colon < length && is_one_of(text[colon], "abcdefghijklmnopqrstuvwxyz0123456789"))
        colon++;
    if (colon == 0 || colon + 1 >= length || text[colon] != ':')
        return false;
    for (size_t i = colon + 1; i < length; i++)
        if (!is_one_of(text[i], "0123456789abcdef"))
            return false;
    return true;
}

enum zt_status zt2_read_digest(struct zt2_walk *walk, const struct zt_cbor_item *value,
                               const char **out_text, uint32_t *out_length)
{
    if (value->kind == ZT_CBOR_TEXT && !is_digest((const char *)value->bytes, value->value))
        return zt2_refuse(walk, value, "a digest is lower-case \"algorithm:hex\"");
    return zt2_read_text(walk, value, out_text, out_length);
}

int zt2_compare_shards(const void *a, const void *b)
{
    const struct zt_shard *left = a;
    const struct zt_shard *right = b;
    uint32_t shorter =
        left->name_length < right->name_length ? left->name_length : right->name_length;
    int order = memcmp(left->name, right->name, shorter);

    if (order != 0)
        return order;
    return (left->name_length > right->name_length) - (left->name_length < right->name_length);
}
