/* .mag version 300 (0.3.0), which has no specification: read as magnetron 0.2.2 writes it.
 *
 * The header holds magic, version, a reserved word, and four 64-bit numbers: offset and length of
 * the manifest and of the data. Offsets in the manifest are relative to the data. There is no
 * checksum. */
#include "formats/mag/mag.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "cbor/json_cbor.h"
#include "formats/formats.h"

#define HEADER_BYTES 44
#define AUX_AT       8
#define SCHEMA       "mag §Manifest Schema"

static const struct {
    enum zt_dtype dtype;
    enum zt_logical logical;
} types[] = {{ZT_F32, ZT_LOGICAL_NONE},     {ZT_F16, ZT_LOGICAL_NONE},  {ZT_BF16, ZT_LOGICAL_NONE},
             {ZT_U8, ZT_LOGICAL_F8_E4M3FN}, {ZT_BOOL, ZT_LOGICAL_NONE}, {ZT_U8, ZT_LOGICAL_NONE},
             {ZT_I8, ZT_LOGICAL_NONE},      {ZT_U16, ZT_LOGICAL_NONE},  {ZT_I16, ZT_LOGICAL_NONE},
             {ZT_U32, ZT_LOGICAL_NONE},     {ZT_I32, ZT_LOGICAL_NONE},  {ZT_U64, ZT_LOGICAL_NONE},
             {ZT_I64, ZT_LOGICAL_NONE}};

bool mag_type_find(uint64_t number, struct zt_tensor *tensor)
{
    if (number >= sizeof(types) / sizeof(*types))
        return false;
    tensor->dtype = types[number].dtype;
    tensor->logical = types[number].logical;
    return true;
}

struct reading {
    struct zt_builder *builder;
    struct zt_json_reader json;
    uint64_t data_offset;
    uint64_t data_length;
};

/* --- the header --- */

static enum zt_status check_header(const struct zt_manifest_place *place,
                                   const struct reading *reading, uint64_t size,
                                   struct zt_error *error)
{
    if (reading->data_offset > size || place->offset < HEADER_BYTES || place->length == 0 ||
        place->offset > reading->data_offset ||
        place->length > reading->data_offset - place->offset)
        return zt_fail(error, ZT_INVALID, "mag §Header ManifestBounds", 12,
                       "%sthe manifest is empty, or not between header and data",
                       reading->data_offset > size ? CUT_OFF : "");
    if (place->length > MAG_RECORDS_MAX)
        return zt_fail(error, ZT_INVALID, "mag §Header TooLarge", 20,
                       "a manifest of %" PRIu64 " bytes, more than 1 GiB", place->length);
    if (reading->data_length != size - reading->data_offset)
        return zt_fail(error, ZT_INVALID, "mag §Snapshot DataEnd", 36,
                       "%sdata of %" PRIu64 " bytes where the file has %" PRIu64,
                       reading->data_length > size - reading->data_offset ? CUT_OFF : "",
                       reading->data_length, size - reading->data_offset);
    return ZT_OK;
}

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    struct reading *reading = state;
    uint64_t size = zt_source_size(source);
    uint8_t bytes[HEADER_BYTES];
    enum zt_status status;

    if (size < sizeof(bytes))
        return zt_fail(error, ZT_INVALID, "mag §Header FileTooSmall", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", size);
    status = zt_source_read_at(source, 0, bytes, sizeof(bytes), error);
    if (status != ZT_OK)
        return status;
    if (zt_load_le32(bytes + AUX_AT) != 0)
        return zt_fail(error, ZT_INVALID, "mag §Header Reserved", AUX_AT,
                       "the reserved word is not 0");
    *out_place = (struct zt_manifest_place){.offset = zt_load_le64(bytes + 12),
                                            .length = zt_load_le64(bytes + 20)};
    reading->data_offset = zt_load_le64(bytes + 28);
    reading->data_length = zt_load_le64(bytes + 36);
    return check_header(out_place, reading, size, error);
}

/* --- objects of known keys --- */

struct member {
    const char *key;
    enum zt_status (*read)(struct reading *reading, void *context, struct zt_error *error);
    bool is_required;
};

/* Reads the rest of an object whose opening brace has been read; skips unknown keys. */
static enum zt_status read_members(struct reading *reading, const struct member *members,
                                   unsigned count, void *context, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item key;
    unsigned seen = 0;
    bool more = true;
    uint64_t at = reading->json.base_offset + reading->json.position - 1;

    for (;;) {
        enum zt_status status = zt_json_member(&reading->json, &walk, &more, &key, error);
        unsigned number = 0;

        if (status != ZT_OK)
            return status;
        if (!more)
            break;
        while (number < count && !zt_text_is(key.text, members[number].key))
            number++;
        if (number < count && (seen & 1u << number) != 0)
            return zt_fail(error, ZT_INVALID, SCHEMA, key.offset, "the key %s occurs twice",
                           members[number].key);
        seen |= number < count ? 1u << number : 0;
        status = number < count ? members[number].read(reading, context, error)
                                : zt_json_skip(&reading->json, error);
        if (status != ZT_OK)
            return status;
    }
    for (unsigned i = 0; i < count; i++)
        if (members[i].is_required && (seen & 1u << i) == 0)
            return zt_fail(error, ZT_INVALID, SCHEMA, at, "the key %s is missing", members[i].key);
    return ZT_OK;
}

static enum zt_status begin(struct reading *reading, enum zt_json_kind kind, struct zt_error *error)
{
    struct zt_json_item item;
    enum zt_status status = zt_json_next(&reading->json, &item, error);

    if (status == ZT_OK && item.kind != kind)
        return zt_fail(error, ZT_INVALID, SCHEMA, item.offset, "the value is not %s",
                       kind == ZT_JSON_OBJECT ? "an object" : "an array");
    return status;
}

static enum zt_status read_uint(struct reading *reading, uint64_t *out_value,
                                struct zt_error *error)
{
    struct zt_json_item item;
    enum zt_status status = zt_json_next(&reading->json, &item, error);

    if (status == ZT_OK && !zt_json_uint(&item, out_value))
        return zt_fail(error, ZT_INVALID, SCHEMA, item.offset, "the value is not a whole number");
    return status;
}

/* --- tensors --- */

static enum zt_status read_shape(struct reading *reading, void *context, struct zt_error *error)
{
    struct zt_tensor *tensor = context;
    struct zt_json_walk walk = {0};
    bool more = true;
    enum zt_status status = begin(reading, ZT_JSON_ARRAY, error);

    while (status == ZT_OK) {
        uint64_t at = reading->json.base_offset + reading->json.position;

        status = zt_json_element(&reading->json, &walk, &more, error);
        if (status != ZT_OK || !more)
            return status;
        if (tensor->rank == ZT_RANK_MAX)
            return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at, "more than 64 dimensions");
        status = read_uint(reading, &tensor->shape[tensor->rank++], error);
    }
    return status;
}

static enum zt_status read_type(struct reading *reading, void *context, struct zt_error *error)
{
    struct zt_tensor *tensor = context;
    uint64_t at = reading->json.base_offset + reading->json.position;
    uint64_t number = 0;
    enum zt_status status = read_uint(reading, &number, error);

    if (status == ZT_OK && !mag_type_find(number, tensor))
        return zt_fail(error, ZT_INVALID, "mag §Tensors Dtype", at,
                       "the dtype %" PRIu64 " is not known", number);
    return status;
}

static enum zt_status read_offset(struct reading *reading, void *context, struct zt_error *error)
{
    return read_uint(reading, &((struct zt_tensor *)context)->offset, error);
}

static enum zt_status read_length(struct reading *reading, void *context, struct zt_error *error)
{
    return read_uint(reading, &((struct zt_tensor *)context)->length, error);
}

static const struct member tensor_members[] = {{"shape", read_shape, true},
                                               {"dtype_id", read_type, true},
                                               {"offset", read_offset, true},
                                               {"nbytes", read_length, true}};

static enum zt_status add_tensor(struct reading *reading, struct zt_tensor *tensor, uint64_t at,
                                 struct zt_error *error)
{
    uint64_t wanted;
    enum zt_status status = mag_tensor_bytes(tensor, at, &wanted, error);

    if (status != ZT_OK)
        return status;
    if (wanted != tensor->length)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataSize", at,
                       "data of %" PRIu64 " bytes, but shape and dtype take %" PRIu64,
                       tensor->length, wanted);
    if (tensor->offset > reading->data_length ||
        tensor->length > reading->data_length - tensor->offset)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataBounds", at,
                       "data of %" PRIu64 " bytes at %" PRIu64 " is not within the file",
                       tensor->length, tensor->offset);
    tensor->offset += reading->data_offset;
    return zt_tensor_add(reading->builder, tensor, error);
}

static enum zt_status read_tensor(struct reading *reading, const struct zt_json_item *key,
                                  struct zt_error *error)
{
    struct zt_tensor tensor = {.name = key->text};
    enum zt_status status = mag_key_check(key->text, key->offset, error);

    if (status == ZT_OK)
        status = begin(reading, ZT_JSON_OBJECT, error);
    if (status == ZT_OK)
        status = read_members(reading, tensor_members,
                              sizeof(tensor_members) / sizeof(*tensor_members), &tensor, error);
    if (status == ZT_OK)
        status = add_tensor(reading, &tensor, key->offset, error);
    if (status != ZT_OK)
        zt_error_at(error, key->text, (struct zt_text){NULL, 0});
    return status;
}

/* --- the manifest --- */

static enum zt_status read_tensors(struct reading *reading, void *context, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item key;
    bool more = true;
    enum zt_status status = begin(reading, ZT_JSON_OBJECT, error);

    (void)context;
    while (status == ZT_OK) {
        status = zt_json_member(&reading->json, &walk, &more, &key, error);
        if (status != ZT_OK || !more)
            return status;
        status = read_tensor(reading, &key, error);
    }
    return status;
}

static enum zt_status read_attributes(struct reading *reading, void *context,
                                      struct zt_error *error)
{
    struct zt_model *model = reading->builder->model;
    uint64_t at = reading->json.base_offset + reading->json.position;
    enum zt_status status;

    (void)context;
    status = zt_json_to_cbor(&reading->json, &model->storage->arena, &model->attributes, error);
    if (status == ZT_OK && ((uint8_t)model->attributes.bytes[0] & 0xE0) != 0xA0)
        return zt_fail(error, ZT_INVALID, SCHEMA, at, "usr_metadata is not an object");
    return status;
}

static enum zt_status read_version(struct reading *reading, void *context, struct zt_error *error)
{
    uint64_t at = reading->json.base_offset + reading->json.position;
    uint64_t version = 0;
    enum zt_status status = read_uint(reading, &version, error);

    (void)context;
    if (status == ZT_OK && version != 1)
        return zt_fail(error, ZT_INVALID, "mag §Header Version", at,
                       "a manifest of version %" PRIu64 ", known is 1", version);
    return status;
}

static const struct member root_members[] = {{"manifest_ver", read_version, true},
                                             {"usr_metadata", read_attributes, false},
                                             {"tensor_map", read_tensors, true}};

static enum zt_status read_manifest(void *state, struct zt_builder *builder, struct zt_error *error)
{
    static const struct zt_json_rules rules = {"mag §Manifest JsonSyntax",
                                               "mag §Manifest JsonDepth"};
    struct reading *reading = state;
    struct zt_model *model = builder->model;
    enum zt_status status;

    model->version = zt_text_from("300");
    reading->builder = builder;
    reading->json =
        (struct zt_json_reader){.bytes = (char *)model->storage->manifest,
                                .length = (size_t)model->manifest_length,
                                .base_offset = model->manifest_offset,
                                .takes_non_finite = true, /* Python writes NaN and Infinity */
                                .rules = &rules};
    status = begin(reading, ZT_JSON_OBJECT, error);
    if (status == ZT_OK)
        status = read_members(reading, root_members, sizeof(root_members) / sizeof(*root_members),
                              NULL, error);
    return status == ZT_OK ? zt_json_end(&reading->json, error) : status;
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_MAG,
    .name = "mag",
    .duplicate_rule = "mag §Names DuplicateName",
    .overlap_rule = "mag §Data Overlap",
    .covers_manifest = true,
    .locate = locate,
    .read = read_manifest,
};

enum zt_status mag_json_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error)
{
    struct reading reading = {0};

    return zt_reader_open(&reader, &reading, source, out_model, error);
}
