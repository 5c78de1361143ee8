/* The metadata of arrays and groups, as defined by zarr's core specification 3. */
#include "derived/zarr_node.h"

#include <stdio.h>
#include <string.h>

#include "zt/attributes.h"

void zarr_node_init(struct zarr_node *node)
{
    *node = (struct zarr_node){.text = {.bytes = NULL}};
    json_init(&node->json, false);
}

void zarr_node_free(struct zarr_node *node)
{
    zt_buffer_free(&node->text);
    json_free(&node->json);
}

bool zarr_node_failed(const struct zarr_node *node)
{
    return node->json.failed || node->text.failed;
}

/* --- values --- */

static void put_raw(struct json *json, const char *text)
{
    json_raw(json, text, strlen(text));
}

static void put_member(struct json *json, const char *key, const char *raw)
{
    json_key_string(json, key);
    put_raw(json, raw);
}

static void append(void *context, const char *bytes, size_t length)
{
    zt_buffer_append(context, bytes, length);
}

static void put_attributes(struct zarr_node *node, struct zt_text attributes)
{
    struct zt_error error;

    json_key_string(&node->json, "attributes");
    if (attributes.length == 0) {
        put_raw(&node->json, "{}");
        return;
    }
    node->text.length = 0;
    if (zt_attributes_write_json(attributes, append, &node->text, &error) != ZT_OK)
        node->text.failed = true;
    if (!node->text.failed)
        json_raw(&node->json, (const char *)node->text.bytes, node->text.length);
}

static void begin(struct zarr_node *node, const char *type)
{
    node->json.length = 0;
    node->json.after_value = false;
    json_object_begin(&node->json);
    put_member(&node->json, "zarr_format", "3");
    json_key_string(&node->json, "node_type");
    json_put_string(&node->json, type);
}

void zarr_text_end(struct json *json)
{
    json_object_end(json);
    if (!json->failed && json->text[json->length - 1] == '\n')
        json->length--;
}

/* --- groups --- */

void zarr_node_group(struct zarr_node *node, struct zt_text attributes,
                     const struct json *consolidated)
{
    struct json *json = &node->json;

    begin(node, "group");
    put_attributes(node, attributes);
    if (consolidated != NULL && !consolidated->failed) {
        json_key_string(json, "consolidated_metadata");
        json_object_begin(json);
        put_member(json, "kind", "\"inline\"");
        put_member(json, "must_understand", "false");
        json_key_string(json, "metadata");
        json_raw(json, consolidated->text, consolidated->length);
        json_object_end(json);
    }
    zarr_text_end(json);
}

/* --- arrays --- */

/* Writes a shape with each dimension at least `least`: an array may have dimensions of 0, a chunk
 * may not. */
static void put_shape(struct json *json, const struct zarr_array *array, const uint64_t *shape,
                      uint64_t least)
{
    json_array_begin(json);
    for (unsigned i = 0; i < array->object->rank; i++)
        json_uint(json, shape[i] > least ? shape[i] : least);
    json_array_end(json);
}

static void put_fill_value(struct json *json, const char *data_type)
{
    const char *value = "0";

    if (strcmp(data_type, "bool") == 0)
        value = "false";
    else if (strncmp(data_type, "float", strlen("float")) == 0)
        value = "0.0";
    else if (strncmp(data_type, "complex", strlen("complex")) == 0)
        value = "[0.0,0.0]";
    put_member(json, "fill_value", value);
}

static bool has_wide_words(const struct zarr_array *array)
{
    return array->is_widened || zt_dtype_width(array->component->dtype) > 1;
}

/* Fortran order is the reversed order of axes. */
static void put_transposition(struct json *json, const struct zarr_array *array)
{
    json_object_begin(json);
    put_member(json, "name", "\"transpose\"");
    json_key_string(json, "configuration");
    json_object_begin(json);
    json_key_string(json, "order");
    json_array_begin(json);
    for (unsigned i = array->object->rank; i > 0; i--)
        json_uint(json, i - 1);
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
}

static void put_codecs(struct json *json, const struct zarr_array *array)
{
    json_key_string(json, "codecs");
    json_array_begin(json);
    if (array->transposed)
        put_transposition(json, array);
    if (!has_wide_words(array))
        put_raw(json, "{\"name\":\"bytes\"}");
    else if (array->big_endian)
        put_raw(json, "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}");
    else
        put_raw(json, "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}");
    if (array->zstd)
        put_raw(json, "{\"name\":\"zstd\",\"configuration\":{\"level\":0,\"checksum\":false}}");
    json_array_end(json);
}

/* xarray needs names of dimensions. They differ between arrays, so that their lengths may differ
 * too: "weight[0]". */
static void put_dimension_names(struct zarr_node *node, const struct zt_object *object)
{
    const struct zt_text name = zt_object_name(object);
    const char *slash = memrchr(name.bytes, '/', name.length);
    const char *last = slash != NULL ? slash + 1 : name.bytes;
    const size_t length = name.length - (size_t)(last - name.bytes);
    struct zt_buffer *text = &node->text;

    json_key_string(&node->json, "dimension_names");
    json_array_begin(&node->json);
    for (unsigned i = 0; i < object->rank; i++) {
        char ending[16];

        snprintf(ending, sizeof(ending), "[%u]", i);
        text->length = 0;
        zt_buffer_append(text, last, length);
        zt_buffer_append(text, ending, strlen(ending));
        if (!text->failed)
            json_text(&node->json, (struct zt_text){(const char *)text->bytes, text->length});
    }
    json_array_end(&node->json);
}

static void put_chunk_grid(struct json *json, const struct zarr_array *array, const uint64_t *shape)
{
    json_key_string(json, "chunk_grid");
    json_object_begin(json);
    put_member(json, "name", "\"regular\"");
    json_key_string(json, "configuration");
    json_object_begin(json);
    json_key_string(json, "chunk_shape");
    put_shape(json, array, shape, 1);
    json_object_end(json);
    json_object_end(json);
    put_member(json, "chunk_key_encoding",
               "{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}}");
}

void zarr_node_array(struct zarr_node *node, const struct zt_model *model,
                     const struct zarr_array *array)
{
    const struct zt_object *object = array->object;
    const uint64_t *shape = zt_object_shape(model, object);
    struct json *json = &node->json;

    begin(node, "array");
    json_key_string(json, "shape");
    put_shape(json, array, shape, 0);
    json_key_string(json, "data_type");
    json_put_string(json, array->data_type);
    put_chunk_grid(json, array, shape);
    put_fill_value(json, array->data_type);
    put_codecs(json, array);
    put_attributes(node,
                   (struct zt_text){(const char *)object->attributes, object->attributes_length});
    put_dimension_names(node, object);
    zarr_text_end(json);
}
