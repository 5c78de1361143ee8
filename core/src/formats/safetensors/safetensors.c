/* Safetensors: the container, the header's root and its metadata.
 *
 * A file is the header's length (8 bytes), the header in JSON, and the data, which the tensors
 * cover without gaps. The tensors' entries are read in safetensors_tensor.c. */
#include <assert.h>
#include <inttypes.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "formats/attribute_list.h"
#include "formats/formats.h"
#include "formats/safetensors/safetensors_tensor.h"

#define LENGTH_BYTES 8
/* The format's own bound. */
#define HEADER_MAX_BYTES 100000000
/* That of the package, whose JSON reader (serde_json) refuses 128. */
#define DEPTH_MAX 127

/* --- metadata: named texts, which become the model's attributes --- */

static enum zt_status read_pairs(struct safetensors_reading *reading,
                                 struct zt_attribute_list *list, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item key;
    struct zt_json_item value;
    bool more = true;

    for (;;) {
        enum zt_status status = zt_json_member(&reading->json, &walk, &more, &key, error);

        if (status != ZT_OK || !more)
            return status;
        status = zt_json_next(&reading->json, &value, error);
        if (status == ZT_OK && value.kind != ZT_JSON_TEXT)
            status = zt_fail(error, ZT_INVALID, SAFETENSORS_SCHEMA, value.offset,
                             "a value of metadata is not a text");
        if (status == ZT_OK)
            status = zt_attribute_list_key(list, key.text, error);
        if (status != ZT_OK)
            return status;
        zt_cbor_put_text(&list->pairs, value.text);
    }
}

static enum zt_status read_metadata(struct safetensors_reading *reading,
                                    const struct zt_json_item *key, struct zt_error *error)
{
    struct zt_attribute_list list = {0};
    struct zt_json_item value;
    enum zt_status status;

    if (reading->has_metadata)
        return zt_fail(error, ZT_INVALID, SAFETENSORS_DUPLICATE, key->offset + 1,
                       "\"__metadata__\" occurs twice");
    reading->has_metadata = true;
    status = zt_json_next(&reading->json, &value, error);
    if (status == ZT_OK && value.kind == ZT_JSON_NULL)
        return ZT_OK;
    if (status == ZT_OK && value.kind != ZT_JSON_OBJECT) {
        status = zt_fail(error, ZT_INVALID, SAFETENSORS_SCHEMA, value.offset,
                         "\"__metadata__\" is not an object");
    }
    if (status == ZT_OK)
        status = read_pairs(reading, &list, error);
    if (status == ZT_OK)
        status = zt_attribute_list_check(&list, reading->builder, SAFETENSORS_DUPLICATE, error);
    if (status == ZT_OK)
        status = zt_attribute_list_keep(&list, reading->builder,
                                        &reading->builder->model->attributes, error);
    zt_attribute_list_free(&list);
    return status;
}

/* --- the root --- */

static enum zt_status read_members(struct safetensors_reading *reading, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item key;
    bool more = true;

    for (;;) {
        enum zt_status status = zt_json_member(&reading->json, &walk, &more, &key, error);

        if (status != ZT_OK || !more)
            return status;
        status = zt_text_is(key.text, "__metadata__")
                     ? read_metadata(reading, &key, error)
                     : safetensors_tensor_read(reading, &key, error);
        if (status != ZT_OK)
            return status;
    }
}

static enum zt_status read_header(void *state, struct zt_builder *builder, struct zt_error *error)
{
    static const struct zt_json_rules rules = {"safetensors §Header JsonSyntax",
                                               "safetensors §Header JsonDepth"};
    struct safetensors_reading *reading = state;
    struct zt_model *model = builder->model;
    struct zt_json_item root;
    size_t start = 0;
    enum zt_status status;

    assert(model->manifest_length > 0);
    model->version = zt_text_from("");
    reading->builder = builder;
    reading->data_offset = LENGTH_BYTES + model->manifest_length;
    reading->data_length = model->file_size - reading->data_offset;
    reading->json = (struct zt_json_reader){.bytes = (char *)model->storage->manifest,
                                            .length = (size_t)model->manifest_length,
                                            .base_offset = model->manifest_offset,
                                            .depth_max = DEPTH_MAX,
                                            .rules = &rules};
    while (start < reading->json.length && zt_json_is_space(reading->json.bytes[start]))
        start++;
    if (start == reading->json.length || reading->json.bytes[start] != '{')
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderStart",
                       model->manifest_offset + start, "the header does not begin with {");
    status = zt_json_next(&reading->json, &root, error);
    if (status == ZT_OK)
        status = read_members(reading, error);
    return status == ZT_OK ? zt_json_end(&reading->json, error) : status;
}

/* --- the whole --- */

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    uint8_t bytes[LENGTH_BYTES];
    enum zt_status status;
    uint64_t length;

    (void)state;
    if (size < LENGTH_BYTES)
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderBounds", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", size);
    status = zt_source_read_at(source, 0, bytes, sizeof(bytes), error);
    if (status != ZT_OK)
        return status;
    length = zt_load_le64(bytes);
    if (length > HEADER_MAX_BYTES)
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderTooLarge", 0,
                       "the header's length is %" PRIu64 " bytes, more than %d", length,
                       HEADER_MAX_BYTES);
    if (length == 0 || length > size - LENGTH_BYTES)
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderBounds", 0,
                       "%sa header of %" PRIu64 " bytes does not fit a file of %" PRIu64,
                       length > 0 ? CUT_OFF : "", length, size);
    *out_place = (struct zt_manifest_place){.offset = LENGTH_BYTES, .length = length};
    return ZT_OK;
}

static enum zt_status check_tiling(void *state, struct zt_model *model, struct zt_error *error)
{
    const struct safetensors_reading *reading = state;

    return safetensors_tiling_check(model, reading->data_offset, error);
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_SAFETENSORS,
    .name = "safetensors",
    .duplicate_rule = SAFETENSORS_DUPLICATE,
    .keeps_only_names = true,
    .locate = locate,
    .read = read_header,
    .check = check_tiling,
};

enum zt_status safetensors_open(struct zt_source *source, struct zt_model **out_model,
                                struct zt_error *error)
{
    struct safetensors_reading reading = {0};

    return zt_reader_open(&reader, &reading, source, out_model, error);
}
