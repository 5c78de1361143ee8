/* The model: what every container becomes once it is opened and validated.
 *
 * Named objects, each with a shape, a layout and components; a component is a run of stored bytes
 * and what they mean. A model is immutable, lies in a few blocks that are freed together, and may
 * be read by many threads at once. The structures are compact because models of a million objects
 * exist: texts are borrowed from the manifest's bytes, and shapes and components lie in arrays of
 * the model, found by the functions below. */
#ifndef ZT_MODEL_H
#define ZT_MODEL_H

#include "zt/dtype.h"
#include "zt/source.h"
#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum zt_format {
    ZT_FORMAT_ZT01,
    ZT_FORMAT_ZT1,
    ZT_FORMAT_ZT2,
    ZT_FORMAT_MAG,
    ZT_FORMAT_SAFETENSORS,
    ZT_FORMAT_GGUF,
    ZT_FORMAT_NPZ,
    ZT_FORMAT_NPY
};

/* Layouts whose rules the library knows; everything else is structural: listed and served as stored
 * bytes. */
enum zt_layout {
    ZT_LAYOUT_OTHER,
    ZT_LAYOUT_DENSE,
    ZT_LAYOUT_SPARSE_CSR,
    ZT_LAYOUT_SPARSE_COO,
    ZT_LAYOUT_QUANT_GROUP,
    ZT_LAYOUT_MX,
    ZT_LAYOUT_GGUF,
    /* zTensor 0.1's sparse blobs: everything in the one component "data" (its section on sparse
     * data). */
    ZT_LAYOUT_ZT01_COO,
    ZT_LAYOUT_ZT01_CSR
};

enum zt_encoding {
    ZT_ENCODING_RAW,
    ZT_ENCODING_ZSTD,
    ZT_ENCODING_ZSTD_SEEKABLE,
    /* A deflated entry of a ZIP archive (NPZ). */
    ZT_ENCODING_DEFLATE,
    /* An encoding this library cannot decode: the stored bytes can be had, the decoded ones cannot.
     */
    ZT_ENCODING_UNKNOWN
};

/* How a component's stored stream becomes the tensor's bytes where decompressing and swapping is
 * not all (NPY, NPZ). */
struct zt_arrangement {
    /* Bytes before the data, an NPY header: inside the stream that a deflated entry gives, or in
     * the file right before zt_component.offset. They are no part of the tensor, but the digest of
     * a ZIP entry covers them. */
    uint32_t lead_bytes;
    /* The data is in Fortran order; rank and shape, as the tensor has them, say how it is turned.
     */
    bool fortran;
    uint8_t rank;
    const uint64_t *shape;
};

/* zt_component.decoded_length where nothing tells it before decoding. */
#define ZT_LENGTH_UNKNOWN UINT64_MAX

struct zt_component {
    const char *name;
    /* Texts as the file has them, NULL where absent. encoding is never NULL ("raw" where the file
     * says nothing). */
    const char *type;
    const char *encoding_name;
    const char *digest;
    /* NULL but for NPY and NPZ. */
    const struct zt_arrangement *arrangement;
    /* Absolute position of the stored bytes in their file. */
    uint64_t offset;
    uint64_t length;
    /* Bytes once decoded; equal to length for raw; ZT_LENGTH_UNKNOWN where the file does not say.
     */
    uint64_t decoded_length;
    uint32_t name_length;
    uint32_t type_length;
    uint32_t encoding_length;
    uint32_t digest_length;
    /* 0: in the model's own file; n: in shard n - 1 of the model's shard table. */
    uint32_t shard;
    uint8_t dtype;    /* enum zt_dtype */
    uint8_t logical;  /* enum zt_logical */
    uint8_t encoding; /* enum zt_encoding */
    /* Stored big-endian: words of the dtype's width are swapped when the component is decoded
     * (zTensor 0.1, NPY). */
    uint8_t big_endian;
};

struct zt_object {
    const char *name;
    /* The layout's text as the file has it ("dense", "zt.sparse_csr/1"). */
    const char *format;
    /* One CBOR map, as bytes, or NULL where the object has no attributes. */
    const uint8_t *attributes;
    uint32_t name_length;
    uint32_t format_length;
    uint32_t attributes_length;
    uint32_t component_count;
    uint32_t first_component; /* index into zt_model.components */
    uint32_t first_dimension; /* index into zt_model.dimensions */
    uint8_t rank;
    uint8_t layout; /* enum zt_layout */
};

/* A file that a zTensor 2 model keeps some of its components in. */
struct zt_shard {
    const char *name;
    const char *digest;
    uint64_t size_bytes;
    uint32_t name_length;
    uint32_t digest_length;
};

struct zt_model {
    enum zt_format format;
    /* "zt", "mag", "safetensors", "gguf", "npz" or "npy", and the version as clients are told it:
     * "0.1.0", "2", or the file's own text from 1.0 on; "1" or "100" for mag, "2" or "3" for gguf,
     * "" for the others. */
    const char *format_name;
    struct zt_text version;
    /* One CBOR map, as bytes; empty where the file has none. */
    struct zt_text attributes;
    const struct zt_object *objects; /* sorted by name, bytewise */
    uint32_t object_count;
    uint32_t component_count;
    const struct zt_component
        *components; /* those of one object stand together, sorted by name, bytewise */
    const uint64_t *dimensions;
    const struct zt_shard *shards; /* sorted by name, bytewise */
    uint32_t shard_count;
    uint64_t file_size;
    uint64_t manifest_offset;
    uint64_t manifest_length;
    /* XXH3-64 of the manifest's bytes, whatever the format: two files with different manifests
     * differ here. */
    uint64_t manifest_hash;
    /* What owns the arrays and texts; private to the library. */
    struct zt_model_storage *storage;
};

/* Opens a container: tells its format by its content, reads head, tail and manifest and nothing
 * else, and checks every rule that can be told without the data (docs/rules/). The source is
 * borrowed for this call only. ZT_INVALID with rule and offset when a rule is broken;
 * ZT_UNSUPPORTED when the content is a format that is not read; ZT_DATA_SHARD for a valid zTensor 2
 * container without a manifest; ZT_LIMIT, ZT_NO_MEMORY, ZT_IO. A manifest of n bytes makes the
 * reader hold at most 16 n bytes + 1 MiB, whatever it declares. */
enum zt_status zt_model_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error);

/* Takes NULL. */
void zt_model_free(struct zt_model *model);

/* NULL when there is none of that name. Borrowed from the model. */
const struct zt_object *zt_model_find(const struct zt_model *model, struct zt_text name);
const struct zt_component *zt_object_find(const struct zt_model *model,
                                          const struct zt_object *object, struct zt_text name);

/* Product of the shape, folded from left to right; validated to fit in 64 bits when the model was
 * opened. */
uint64_t zt_object_elements(const struct zt_model *model, const struct zt_object *object);

static inline const struct zt_component *zt_object_components(const struct zt_model *model,
                                                              const struct zt_object *object)
{
    return model->components + object->first_component;
}

static inline const uint64_t *zt_object_shape(const struct zt_model *model,
                                              const struct zt_object *object)
{
    return model->dimensions + object->first_dimension;
}

/* A component's place in zt_model.components: a number that identifies it within the model. */
static inline uint32_t zt_component_index(const struct zt_model *model,
                                          const struct zt_component *component)
{
    return (uint32_t)(component - model->components);
}

static inline struct zt_text zt_object_name(const struct zt_object *object)
{
    struct zt_text name = {object->name, object->name_length};

    return name;
}

static inline struct zt_text zt_component_name(const struct zt_component *component)
{
    struct zt_text name = {component->name, component->name_length};

    return name;
}

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
