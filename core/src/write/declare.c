/* Reading declarations from JSON, with the reader that formats with JSON headers use. */
#include "zt/declare.h"
#include "base/decimal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cbor/attributes_encode.h"
#include "cbor/json_cbor.h"
#include "model/layout.h"
#include "write/depths.h"

struct declaring {
    struct zt_json_reader reader;
    struct zt_arena arena; /* of the declaration */
    struct zt_declaration declaration;
    struct zt_text attributes; /* in CBOR, in the order in which they were sent */
    bool has_format;
    struct zt_error *error;
};

static const struct zt_json_rules no_rules = {NULL, NULL};

static enum zt_status fail_argument(struct zt_error *error, const char *message)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
}

/* --- members --- */

static enum zt_status take_version(struct declaring *declaring)
{
    struct zt_json_item item;
    enum zt_status status = zt_json_next(&declaring->reader, &item, declaring->error);

    if (status != ZT_OK)
        return status;
    if (item.kind == ZT_JSON_TEXT && zt_text_is(item.text, "2")) {
        declaring->declaration.target = ZT_TARGET_ZT2;
        return ZT_OK;
    }
    if (item.kind == ZT_JSON_TEXT && zt_text_is(item.text, "1.2.0"))
        return ZT_OK;
    return fail_argument(declaring->error, "\"version\" must be \"1.2.0\" or \"2\"");
}

static enum zt_status take_format(struct declaring *declaring)
{
    struct zt_json_item item;
    enum zt_status status = zt_json_next(&declaring->reader, &item, declaring->error);

    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_JSON_TEXT || item.text.length == 0)
        return fail_argument(declaring->error, "\"format\" must be a string");
    declaring->declaration.format = item.text;
    declaring->has_format = true;
    return ZT_OK;
}

static enum zt_status take_extent(struct declaring *declaring)
{
    struct zt_shape *shape = &declaring->declaration.shape;
    struct zt_json_item item;
    uint64_t extent = 0;
    enum zt_status status = zt_json_next(&declaring->reader, &item, declaring->error);

    if (status != ZT_OK)
        return status;
    if (!zt_json_uint(&item, &extent))
        return fail_argument(declaring->error, "\"shape\" must hold non-negative integers");
    if (shape->rank == ZT_DECLARED_RANK_MAX)
        return fail_argument(declaring->error, "\"shape\" has more than 64 dimensions");
    assert(shape->rank < ZT_DECLARED_RANK_MAX);
    shape->extents[shape->rank++] = extent;
    return ZT_OK;
}

static enum zt_status check_shape(const struct zt_shape *shape, struct zt_error *error)
{
    uint64_t elements;

    return zt_shape_product(shape->extents, shape->rank, &elements)
               ? ZT_OK
               : fail_argument(error,
                               "the number of elements of the shape does not fit in 64 bits");
}

static enum zt_status take_shape(struct declaring *declaring)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item item;
    bool more = true;
    enum zt_status status = zt_json_next(&declaring->reader, &item, declaring->error);

    if (status == ZT_OK && item.kind != ZT_JSON_ARRAY)
        return fail_argument(declaring->error, "\"shape\" must be an array");
    while (status == ZT_OK) {
        status = zt_json_element(&declaring->reader, &walk, &more, declaring->error);
        if (status != ZT_OK || !more)
            break;
        status = take_extent(declaring);
    }
    assert(declaring->declaration.shape.rank <= ZT_DECLARED_RANK_MAX);
    declaring->declaration.shape.stated = true;
    return status == ZT_OK ? check_shape(&declaring->declaration.shape, declaring->error) : status;
}

/* Keeps the attributes as they are until the version is known, which may follow them. */
static enum zt_status take_attributes(struct declaring *declaring)
{
    struct zt_json_reader ahead = declaring->reader;
    struct zt_json_item item;
    enum zt_status status = zt_json_next(&ahead, &item, declaring->error);

    if (status == ZT_OK && item.kind != ZT_JSON_OBJECT)
        return fail_argument(declaring->error, "\"attributes\" must be an object");
    if (status != ZT_OK)
        return status;
    return zt_json_to_cbor(&declaring->reader, &declaring->arena, &declaring->attributes,
                           declaring->error);
}

/* --- the whole --- */

struct member {
    const char *name;
    enum zt_status (*take)(struct declaring *declaring);
};

static const struct member file_members[] = {
    {"version", take_version}, {"attributes", take_attributes}, {NULL, NULL}};

static const struct member object_members[] = {
    {"shape", take_shape}, {"format", take_format}, {"attributes", take_attributes}, {NULL, NULL}};

static enum zt_status take_member(struct declaring *declaring, const struct member *members,
                                  struct zt_text key, unsigned *seen)
{
    for (unsigned i = 0; members[i].name != NULL; i++) {
        if (!zt_text_is(key, members[i].name))
            continue;
        if (*seen & 1u << i)
            return zt_fail(declaring->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "\"%s\" occurs twice",
                           members[i].name);
        *seen |= 1u << i;
        return members[i].take(declaring);
    }
    return zt_fail(declaring->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "the member \"%.*s\" is unknown", (int)(key.length < 60 ? key.length : 60),
                   key.bytes);
}

static enum zt_status read_members(struct declaring *declaring, const struct member *members)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item item;
    unsigned seen = 0;
    bool more = true;
    enum zt_status status = zt_json_next(&declaring->reader, &item, declaring->error);

    if (status == ZT_OK && item.kind != ZT_JSON_OBJECT)
        return fail_argument(declaring->error, "a JSON object is expected");
    while (status == ZT_OK) {
        status = zt_json_member(&declaring->reader, &walk, &more, &item, declaring->error);
        if (status != ZT_OK || !more)
            break;
        status = take_member(declaring, members, item.text, &seen);
    }
    return status == ZT_OK ? zt_json_end(&declaring->reader, declaring->error) : status;
}

static enum zt_status encode_attributes(struct declaring *declaring, unsigned level,
                                        struct zt_buffer *buffer)
{
    bool zt1 = declaring->declaration.target == ZT_TARGET_ZT1;
    unsigned levels = (zt1 ? ZT_DEPTH_ZT1 : ZT_DEPTH_ZT2) - level;

    assert(level <= (zt1 ? ZT_DEPTH_ZT1 : ZT_DEPTH_ZT2));
    if (declaring->attributes.bytes == NULL)
        return ZT_OK;
    return zt_attributes_encode(declaring->attributes, zt1 ? ZT_ATTRIBUTES_ZT1 : ZT_ATTRIBUTES_ZT2,
                                levels, buffer, declaring->error);
}

/* Stores the attributes and then the format in one block. */
static enum zt_status hold(struct declaring *declaring, const struct zt_buffer *attributes)
{
    struct zt_declaration *declaration = &declaring->declaration;
    char *held = malloc(attributes->length + declaration->format.length + 1);

    if (held == NULL)
        return zt_fail_memory(declaring->error, "a declaration");
    if (attributes->length > 0)
        memcpy(held, attributes->bytes, attributes->length);
    memcpy(held + attributes->length, declaration->format.bytes, declaration->format.length);
    declaration->attributes = (struct zt_text){held, attributes->length};
    declaration->format.bytes = held + attributes->length;
    declaration->held = held;
    return ZT_OK;
}

/* Completes the declaration. Called when all members have been read. */
static enum zt_status complete(struct declaring *declaring, unsigned level)
{
    struct zt_buffer attributes = {0};
    enum zt_status status = encode_attributes(declaring, level, &attributes);

    if (status == ZT_OK && level == ZT_DEPTH_OF_OBJECT && !declaring->declaration.shape.stated &&
        !zt_text_is(declaring->declaration.format, "dense"))
        status =
            fail_argument(declaring->error, "an object that is not dense must state its \"shape\"");
    if (status == ZT_OK)
        status = hold(declaring, &attributes);
    zt_buffer_free(&attributes);
    return status;
}

/* Turns a fault of the text into ZT_ARGUMENT: the request is wrong, but no rule of a format is
 * broken. */
static enum zt_status as_argument(enum zt_status status, struct zt_error *error)
{
    if (status != ZT_INVALID && status != ZT_UNSUPPORTED && status != ZT_LIMIT)
        return status;
    error->status = ZT_ARGUMENT;
    error->rule = NULL;
    error->offset = ZT_NO_OFFSET;
    return ZT_ARGUMENT;
}

/* Strips white space, because the reader, made for headers, skips only spaces after the value. */
static struct zt_text without_space(struct zt_text json)
{
    while (json.length > 0 && memchr(" \t\r\n", json.bytes[json.length - 1], 4) != NULL)
        json.length--;
    return json;
}

/* Reads a copy, because the reader decodes escapes in place. */
static enum zt_status declare(struct declaring *declaring, struct zt_text text,
                              const struct member *members, unsigned level)
{
    struct zt_text trimmed = without_space(text);
    struct zt_text json = trimmed.length > 0 ? trimmed : (struct zt_text){"{}", 2};
    char *copy = malloc(json.length + 1);
    enum zt_status status;

    if (copy == NULL)
        return zt_fail_memory(declaring->error, "a declaration");
    memcpy(copy, json.bytes, json.length);
    declaring->declaration.format = (struct zt_text){"dense", strlen("dense")};
    declaring->reader = (struct zt_json_reader){
        .bytes = copy, .length = json.length, .wants_exact = true, .rules = &no_rules};
    zt_arena_init(&declaring->arena, SIZE_MAX / 2);
    status = read_members(declaring, members);
    if (status == ZT_OK)
        status = complete(declaring, level);
    zt_arena_free(&declaring->arena);
    free(copy);
    return as_argument(status, declaring->error);
}

enum zt_status zt_declare_file(struct zt_text json, struct zt_declaration *out_declaration,
                               struct zt_error *error)
{
    struct zt_error own;
    struct declaring declaring = {.declaration.target = ZT_TARGET_ZT1,
                                  .error = error != NULL ? error : &own};
    enum zt_status status = declare(&declaring, json, file_members, ZT_DEPTH_OF_FILE);

    if (status == ZT_OK)
        *out_declaration = declaring.declaration;
    return status;
}

enum zt_status zt_declare_object(enum zt_target target, struct zt_text json,
                                 struct zt_declaration *out_declaration, struct zt_error *error)
{
    struct zt_error own;
    struct declaring declaring = {.declaration.target = target,
                                  .error = error != NULL ? error : &own};
    enum zt_status status = declare(&declaring, json, object_members, ZT_DEPTH_OF_OBJECT);

    if (status == ZT_OK)
        *out_declaration = declaring.declaration;
    return status;
}

void zt_declaration_free(struct zt_declaration *declaration)
{
    free(declaration->held);
    declaration->held = NULL;
}

/* --- shapes and types --- */

static bool read_extent(const char **at, const char *end, uint64_t *out_extent)
{
    struct zt_text digits = {*at, (size_t)(end - *at)};

    digits.length = zt_decimal_length(digits);
    *at += digits.length;
    return (*at == end || **at == ',') && zt_decimal_read(digits, UINT64_MAX, out_extent);
}

enum zt_status zt_declare_shape(struct zt_text text, struct zt_shape *out_shape,
                                struct zt_error *error)
{
    const char *end = text.bytes + text.length;
    struct zt_shape shape = {.stated = true};
    enum zt_status status;

    for (const char *at = text.bytes; text.length > 0; at++) {
        if (shape.rank == ZT_DECLARED_RANK_MAX)
            return fail_argument(error, "a shape has at most 64 dimensions");
        if (!read_extent(&at, end, &shape.extents[shape.rank]))
            return fail_argument(error,
                                 "a shape is a list of integers separated by commas: 768,768");
        shape.rank++;
        if (at == end)
            break;
    }
    status = check_shape(&shape, error);
    if (status == ZT_OK)
        *out_shape = shape;
    return status;
}

static enum zt_status fail_unknown(struct zt_error *error, const char *what, struct zt_text name)
{
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "the %s \"%.*s\" is unknown", what,
                   (int)(name.length < 60 ? name.length : 60), name.bytes);
}

enum zt_status zt_declare_type(enum zt_target target, struct zt_text dtype, struct zt_text type,
                               enum zt_dtype *out_dtype, enum zt_logical *out_logical,
                               struct zt_error *error)
{
    enum zt_dtype storage;
    enum zt_logical logical = ZT_LOGICAL_NONE;

    if (!zt_dtype_from_name(dtype, &storage))
        return fail_unknown(error, "dtype", dtype);
    if (type.length > 0 && !zt_text_is(type, zt_dtype_name(storage)))
        logical = zt_logical_from_name(type);
    if (logical == ZT_LOGICAL_UNKNOWN)
        return fail_unknown(error, "type", type);
    if (logical != ZT_LOGICAL_NONE && zt_logical_storage(logical) != storage)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "the type %s is stored as %s, not %s", zt_logical_name(logical),
                       zt_dtype_name(zt_logical_storage(logical)), zt_dtype_name(storage));
    if (target == ZT_TARGET_ZT2 && storage == ZT_BOOL) {
        storage = ZT_U8;
        logical = ZT_LOGICAL_BOOL;
    }
    *out_dtype = storage;
    *out_logical = logical;
    return ZT_OK;
}

enum zt_status zt_declared_bytes(const struct zt_shape *shape, enum zt_dtype dtype,
                                 enum zt_logical logical, uint64_t *out_bytes,
                                 struct zt_error *error)
{
    uint64_t elements;

    if (!zt_shape_product(shape->extents, shape->rank, &elements) ||
        zt_element_bytes(dtype, logical, elements, out_bytes) != ZT_OK)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the size of the elements does not fit in 64 bits");
    return ZT_OK;
}
