/* Writing a zTensor 1.2 file: header, blobs at multiples of 64, CBOR manifest, its size, footer
 * (section 4). */
#include "container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "cbor/cbor_write.h"
#include "output.h"
#include "zt/digest.h"

/* Section 4: the same eight bytes begin and end the file. */
static const char magic[] = "ZTEN1000";
#define MAGIC_BYTES    8
#define BLOB_ALIGNMENT 64
#define ZSTD_LEVEL     3

static void put_texts(struct zt_buffer *manifest, const char *key, const char *value)
{
    zt_cbor_put_string(manifest, key);
    zt_cbor_put_string(manifest, value);
}

static void put_number(struct zt_buffer *manifest, const char *key, uint64_t value)
{
    zt_cbor_put_string(manifest, key);
    zt_cbor_put_uint(manifest, value);
}

static void pad(struct zt_buffer *file)
{
    static const uint8_t zeros[BLOB_ALIGNMENT];

    zt_buffer_append(file, zeros,
                     (BLOB_ALIGNMENT - file->length % BLOB_ALIGNMENT) % BLOB_ALIGNMENT);
}

/* Appends the component's stored bytes and returns how many there are. */
static bool put_blob(struct zt_buffer *file, const struct example_component *component,
                     size_t *out_stored_bytes)
{
    size_t bound = ZSTD_compressBound(component->length_bytes);
    size_t length;
    void *stored;

    if (!component->compressed) {
        zt_buffer_append(file, component->bytes, component->length_bytes);
        *out_stored_bytes = component->length_bytes;
        return true;
    }
    stored = malloc(bound);
    if (stored == NULL)
        return false;
    length = ZSTD_compress(stored, bound, component->bytes, component->length_bytes, ZSTD_LEVEL);
    if (!ZSTD_isError(length))
        zt_buffer_append(file, stored, length);
    free(stored);
    *out_stored_bytes = length;
    return !ZSTD_isError(length);
}

static bool put_digest(struct zt_buffer *manifest, const uint8_t *bytes, size_t length)
{
    struct zt_hasher *hasher;
    struct zt_digest digest;
    char text[ZT_DIGEST_TEXT_SIZE];

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return false;
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    zt_digest_format(&digest, text);
    put_texts(manifest, "digest", text);
    return true;
}

/* Stores a component's blob in the file and describes it in the manifest. */
static bool put_component(struct zt_buffer *file, struct zt_buffer *manifest,
                          const struct example_component *component)
{
    size_t offset;
    size_t stored_bytes;

    pad(file);
    offset = file->length;
    if (!put_blob(file, component, &stored_bytes) || file->failed)
        return false;
    zt_cbor_put_string(manifest, component->role);
    zt_cbor_put_map(manifest, 4u + (component->type != NULL) + (component->compressed ? 2u : 0u));
    put_texts(manifest, "dtype", component->dtype);
    if (component->type != NULL)
        put_texts(manifest, "type", component->type);
    put_number(manifest, "offset", offset);
    put_number(manifest, "length", stored_bytes);
    if (component->compressed) {
        put_number(manifest, "uncompressed_length", component->length_bytes);
        put_texts(manifest, "encoding", "zstd");
    }
    return put_digest(manifest, file->bytes + offset, stored_bytes);
}

static void put_quantization(struct zt_buffer *manifest, const struct example_object *object)
{
    zt_cbor_put_string(manifest, "attributes");
    zt_cbor_put_map(manifest, 3);
    put_number(manifest, "bits", object->bits);
    put_number(manifest, "group_size", object->group_size);
    put_texts(manifest, "packing", object->packing);
}

static bool put_object(struct zt_buffer *file, struct zt_buffer *manifest,
                       const struct example_object *object)
{
    zt_cbor_put_string(manifest, object->name);
    zt_cbor_put_map(manifest, object->bits != 0 ? 4 : 3);
    zt_cbor_put_string(manifest, "shape");
    zt_cbor_put_array(manifest, object->rank);
    for (unsigned i = 0; i < object->rank; i++)
        zt_cbor_put_uint(manifest, object->shape[i]);
    put_texts(manifest, "format", object->format);
    if (object->bits != 0)
        put_quantization(manifest, object);
    zt_cbor_put_string(manifest, "components");
    zt_cbor_put_map(manifest, object->component_count);
    for (unsigned i = 0; i < object->component_count; i++)
        if (!put_component(file, manifest, &object->components[i]))
            return false;
    return true;
}

static bool put_model(struct zt_buffer *file, struct zt_buffer *manifest,
                      const struct example_model *model)
{
    zt_cbor_put_map(manifest, 3);
    put_texts(manifest, "version", "1.2.0");
    zt_cbor_put_string(manifest, "attributes");
    zt_cbor_put_map(manifest, model->attribute_count);
    for (size_t i = 0; i < model->attribute_count; i++)
        put_texts(manifest, model->attributes[i].name, model->attributes[i].text);
    zt_cbor_put_string(manifest, "objects");
    zt_cbor_put_map(manifest, model->object_count);
    for (size_t i = 0; i < model->object_count; i++)
        if (!put_object(file, manifest, &model->objects[i]))
            return false;
    return true;
}

static bool build(const struct example_model *model, struct zt_buffer *file)
{
    struct zt_buffer manifest = {0};
    uint8_t size[8];
    bool done;

    zt_buffer_append(file, magic, MAGIC_BYTES);
    done = put_model(file, &manifest, model) && !manifest.failed;
    if (done) {
        for (unsigned i = 0; i < sizeof(size); i++)
            size[i] = (uint8_t)((uint64_t)manifest.length >> (8 * i));
        zt_buffer_append(file, manifest.bytes, manifest.length);
        zt_buffer_append(file, size, sizeof(size));
        zt_buffer_append(file, magic, MAGIC_BYTES);
        done = !file->failed;
    }
    zt_buffer_free(&manifest);
    if (!done)
        errno = ENOMEM;
    return done;
}

bool example_write(const struct example_model *model, const char *path)
{
    struct zt_buffer file = {0};
    bool written = build(model, &file) && output_publish(&file, path);

    zt_buffer_free(&file);
    return written;
}
