/* Safetensors: the container, the header's root and its metadata.
 *
 * A file is the header's length (8 bytes), the header in JSON, and the data, which the tensors
 * cover without gaps. The tensors' entries are read in safetensors_tensor.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cbor/cbor_write.h"
#include "formats/fields.h"
#include "formats/formats.h"
#include "formats/safetensors_tensor.h"

#define LENGTH_BYTES 8
/* The format's own bound. */
#define HEADER_MAX_BYTES 100000000
#define FIRST_KEYS       16

/* --- metadata: texts by name, which become the model's attributes --- */

/* As zt_names_sort wants them. */
struct metadata_key {
    const char *bytes;
    uint32_t length;
};

struct metadata {
    struct zt_buffer pairs; /* CBOR without the map's head */
    struct metadata_key *keys;
    size_t count;
    size_t capacity;
};

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
}

static enum zt_status add_pair(struct metadata *metadata, struct zt_text key, struct zt_text value,
                               struct zt_error *error)
{
    if (metadata->count == metadata->capacity) {
        size_t capacity = metadata->capacity == 0 ? FIRST_KEYS : metadata->capacity * 2;
        struct metadata_key *keys = realloc(metadata->keys, capacity * sizeof(*keys));

        if (keys == NULL)
            return no_memory(error);
        metadata->keys = keys;
        metadata->capacity = capacity;
    }
    metadata->keys[metadata->count++] = (struct metadata_key){key.bytes, (uint32_t)key.length};
    zt_cbor_put_text(&metadata->pairs, key);
    zt_cbor_put_text(&metadata->pairs, value);
    return metadata->pairs.failed ? no_memory(error) : ZT_OK;
}

static enum zt_status read_pairs(struct safetensors_reading *reading, struct metadata *metadata,
                                 struct zt_error *error)
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
        if (status == ZT_OK && value.kind != ZT_JSON_TEXT) {
            status = zt_fail(error, ZT_INVALID, SAFETENSORS_SCHEMA, value.offset,
                             "a value of metadata is not a text");
        }
        if (status == ZT_OK)
            status = add_pair(metadata, key.text, value.text, error);
        if (status != ZT_OK)
            return status;
    }
}

static enum zt_status check_keys(const struct safetensors_reading *reading,
                                 const struct metadata *metadata, struct zt_error *error)
{
    struct zt_named_array keys = {metadata->keys, metadata->count, sizeof(*metadata->keys),
                                  offsetof(struct metadata_key, length)};
    enum zt_status status;
    size_t second;

    if (metadata->keys == NULL)
        return ZT_OK;
    status = zt_names_sort(&keys, error);
    second = status == ZT_OK ? zt_names_duplicate(&keys) : 0;
    if (second > 0) {
        const char *a = metadata->keys[second - 1].bytes;
        const char *b = metadata->keys[second].bytes;

        return zt_fail(error, ZT_INVALID, SAFETENSORS_DUPLICATE,
                       zt_builder_offset_of(&reading->builder, a > b ? a : b),
                       "a key of metadata occurs twice");
    }
    return status;
}

/* Puts the pairs, with the head of a map, where the model keeps what it holds. */
static enum zt_status keep_attributes(struct safetensors_reading *reading,
                                      const struct metadata *metadata, struct zt_error *error)
{
    struct zt_buffer head = {0};
    void *bytes;
    struct zt_model *model;
    size_t length;
    enum zt_status status;

    zt_cbor_put_map(&head, metadata->count);
    if (head.failed)
        return no_memory(error);
    model = reading->builder.model;
    length = head.length + metadata->pairs.length;
    status = zt_arena_take(&model->storage->arena, length, &bytes, error);
    if (status == ZT_OK) {
        memcpy(bytes, head.bytes, head.length);
        if (metadata->pairs.length > 0)
            memcpy((char *)bytes + head.length, metadata->pairs.bytes, metadata->pairs.length);
        model->attributes = (struct zt_text){bytes, length};
    }
    zt_buffer_free(&head);
    return status;
}

static enum zt_status read_metadata(struct safetensors_reading *reading,
                                    const struct zt_json_item *key, struct zt_error *error)
{
    struct metadata metadata = {0};
    struct zt_json_item value;
    enum zt_status status;

    if (reading->builder.model->attributes.length > 0) {
        return zt_fail(error, ZT_INVALID, SAFETENSORS_DUPLICATE, key->offset + 1,
                       "\"__metadata__\" occurs twice");
    }
    status = zt_json_next(&reading->json, &value, error);
    if (status == ZT_OK && value.kind != ZT_JSON_OBJECT) {
        status = zt_fail(error, ZT_INVALID, SAFETENSORS_SCHEMA, value.offset,
                         "\"__metadata__\" is not an object");
    }
    if (status == ZT_OK)
        status = read_pairs(reading, &metadata, error);
    if (status == ZT_OK)
        status = check_keys(reading, &metadata, error);
    if (status == ZT_OK)
        status = keep_attributes(reading, &metadata, error);
    zt_buffer_free(&metadata.pairs);
    free(metadata.keys);
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

static enum zt_status read_header(struct safetensors_reading *reading, struct zt_error *error)
{
    static const struct zt_json_rules rules = {"safetensors §Header JsonSyntax",
                                               "safetensors §Header JsonDepth"};
    const struct zt_model *model = reading->builder.model;
    struct zt_json_item root;
    enum zt_status status;

    reading->json = (struct zt_json_reader){.bytes = (char *)model->storage->manifest,
                                            .length = (size_t)model->manifest_length,
                                            .base_offset = model->manifest_offset,
                                            .rules = &rules};
    if (reading->json.bytes[0] != '{') {
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderStart", model->manifest_offset,
                       "the header does not begin with {");
    }
    status = zt_json_next(&reading->json, &root, error);
    if (status == ZT_OK)
        status = read_members(reading, error);
    return status == ZT_OK ? zt_json_end(&reading->json, error) : status;
}

/* --- the whole --- */

static enum zt_status read_length(struct zt_source *source, uint64_t *out_length,
                                  struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    uint8_t bytes[LENGTH_BYTES];
    enum zt_status status;
    uint64_t length;

    if (size < LENGTH_BYTES) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderBounds", 0,
                       "a file of %" PRIu64 " bytes", size);
    }
    status = zt_source_read_at(source, 0, bytes, sizeof(bytes), error);
    if (status != ZT_OK)
        return status;
    length = zt_load_le64(bytes);
    if (length > HEADER_MAX_BYTES) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderTooLarge", 0,
                       "the header's length is %" PRIu64 " bytes, more than %d", length,
                       HEADER_MAX_BYTES);
    }
    if (length == 0 || length > size - LENGTH_BYTES) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header HeaderBounds", 0,
                       "a header of %" PRIu64 " bytes does not fit a file of %" PRIu64, length,
                       size);
    }
    *out_length = length;
    return ZT_OK;
}

enum zt_status safetensors_open(struct zt_source *source, struct zt_model **out_model,
                                struct zt_error *error)
{
    struct safetensors_reading reading = {0};
    struct zt_model *model = NULL;
    uint64_t length = 0;
    enum zt_status status = read_length(source, &length, error);

    if (status != ZT_OK)
        return status;
    status = zt_builder_init(&reading.builder, source, LENGTH_BYTES, length, error);
    if (status != ZT_OK)
        return status;
    reading.builder.model->format = ZT_FORMAT_SAFETENSORS;
    reading.builder.model->format_name = "safetensors";
    reading.builder.model->version = (struct zt_text){"", 0};
    reading.data_offset = LENGTH_BYTES + length;
    reading.data_length = reading.builder.model->file_size - reading.data_offset;
    status = read_header(&reading, error);
    if (status == ZT_OK)
        status = zt_builder_finish(&reading.builder, SAFETENSORS_DUPLICATE, &model, error);
    if (status != ZT_OK) {
        zt_builder_abandon(&reading.builder);
        return status;
    }
    status = safetensors_tiling_check(model, reading.data_offset, error);
    if (status != ZT_OK) {
        zt_model_free(model);
        return status;
    }
    *out_model = model;
    return ZT_OK;
}
