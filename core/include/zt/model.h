/* The model: what a container of any format becomes when it is opened and validated.
 *
 * A model has named objects, each with a shape, a layout and components. A component is a run of
 * stored bytes and what they mean. A model never changes, is freed as a whole, and may be read by
 * many threads at once. The structures are compact because there are models of a million objects:
 * texts are borrowed from the manifest's bytes, and the functions below find shapes and components
 * in arrays of the model. */
#ifndef ZT_MODEL_H
#define ZT_MODEL_H

#include "zt/digest.h"
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

/* Layouts whose rules the library knows. All others are structural: listed, and read as stored
 * bytes. */
enum zt_layout {
    ZT_LAYOUT_OTHER,
    ZT_LAYOUT_DENSE,
    ZT_LAYOUT_SPARSE_CSR,
    ZT_LAYOUT_SPARSE_COO,
    ZT_LAYOUT_QUANT_GROUP,
    ZT_LAYOUT_MX,
    ZT_LAYOUT_GGUF,
    /* zTensor 0.1's sparse tensors, which have one component "data" (its section on sparse
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
    /* An encoding that this library cannot decode: only the stored bytes can be read. */
    ZT_ENCODING_UNKNOWN
};

/* What else, besides decompressing and swapping bytes, makes the tensor's bytes of the stored ones
 * (NPY, NPZ). */
struct zt_arrangement {
    /* Length of the NPY header before the data: at the start of a deflated entry's stream, else in
     * the file right before zt_component.offset. It is no part of the tensor, but the digest of a
     * ZIP entry covers it. */
    uint32_t lead_bytes;
    /* The data is in Fortran order: it is transposed when it is decoded. Rank and shape are the
     * tensor's. */
    bool fortran;
    uint8_t rank;
    const uint64_t *shape;
};

/* zt_component.decoded_length if it is not known before decoding. */
#define ZT_LENGTH_UNKNOWN UINT64_MAX

struct zt_component {
    const char *name;
    /* Texts as they are in the file; NULL if absent. encoding_name is never NULL: "raw" if the file
     * states none. */
    const char *type;
    const char *encoding_name;
    const char *digest;
    /* NULL except for NPY and NPZ. */
    const struct zt_arrangement *arrangement;
    /* Absolute position of the stored bytes in their file. */
    uint64_t offset;
    uint64_t length;
    /* Equal to length for raw; ZT_LENGTH_UNKNOWN if the file does not state it. */
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
    /* Stored big-endian (zTensor 0.1, NPY): words are swapped when the component is decoded. */
    uint8_t big_endian;
};

struct zt_object {
    const char *name;
    /* The layout's name in the file ("dense", "zt.sparse_csr/1"). */
    const char *format;
    /* The bytes of a CBOR map; NULL if the object has no attributes. */
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

/* Another file that holds components of a zTensor 2 model. */
struct zt_shard {
    const char *name;
    const char *digest;
    uint64_t size_bytes;
    uint32_t name_length;
    uint32_t digest_length;
};

struct zt_model {
    enum zt_format format;
    /* "zt", "mag", "safetensors", "gguf", "npz" or "npy". */
    const char *format_name;
    /* "0.1.0", the file's own text (zTensor 1.x) or "2"; "1" or "100" for mag, "2" or "3" for gguf,
     * "" for the others. */
    struct zt_text version;
    /* The bytes of a CBOR map; empty if the file has no attributes. */
    struct zt_text attributes;
    const struct zt_object *objects; /* sorted by name, bytewise */
    uint32_t object_count;
    uint32_t component_count;
    /* Those of one object are side by side, sorted by name, bytewise. */
    const struct zt_component *components;
    const uint64_t *dimensions;
    const struct zt_shard *shards; /* sorted by name, bytewise */
    uint32_t shard_count;
    uint64_t file_size;
    uint64_t manifest_offset;
    uint64_t manifest_length;
    /* XXH3-64 of the manifest's bytes, in every format. */
    uint64_t manifest_hash;
    /* Owns the texts; private to the library. */
    struct zt_model_storage *storage;
};

/* Opens a container of any format, which is detected by its content. Reads only head, tail and
 * manifest, and checks every rule that does not need the data (docs/rules/). The source is borrowed
 * for this call only. Takes at most 16 n bytes + 1 MiB for a manifest of n bytes, whatever that
 * declares. ZT_INVALID with rule and offset if a rule is broken; ZT_UNSUPPORTED if the format is
 * unknown; ZT_DATA_SHARD for a valid zTensor 2 container without a manifest; ZT_LIMIT,
 * ZT_NO_MEMORY, ZT_IO. */
enum zt_status zt_model_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error);

/* Takes NULL. */
void zt_model_free(struct zt_model *model);

/* NULL if there is none of that name. Borrowed from the model. */
const struct zt_object *zt_model_find(const struct zt_model *model, struct zt_text name);
const struct zt_component *zt_object_find(const struct zt_model *model,
                                          const struct zt_object *object, struct zt_text name);

/* Whether words are stored big-endian and have more than one byte. */
bool zt_component_is_swapped(const struct zt_component *component);
/* Whether the component is in Fortran order and this differs from row-major order: at least two
 * dimensions are not 1. */
bool zt_component_is_transposed(const struct zt_component *component);
/* Whether the decoded bytes are the stored bytes, so that the file's own bytes can be sent. */
bool zt_component_is_plain(const struct zt_component *component);

/* Whether digests cover stored bytes (zTensor up to 1.2) or decoded ones (zTensor 2). True also for
 * ZIP entries, although their CRC-32 covers neither: it covers the inflated entry, with its NPY
 * header and in stored order. */
bool zt_digest_covers_stored(const struct zt_model *model);

/* The digest that a component states. ZT_UNSUPPORTED if it states none, or one of an algorithm that
 * its format does not know; ZT_CORRUPT if no bytes can have that digest. */
enum zt_status zt_component_digest(const struct zt_model *model,
                                   const struct zt_component *component,
                                   struct zt_digest *out_digest, struct zt_error *error);

/* Whether a component states a SHA-256 that covers exactly its decoded bytes, and which. */
bool zt_component_decoded_sha256(const struct zt_model *model, const struct zt_component *component,
                                 uint8_t out_sha256[32]);

/* The product of the shape, which fits in 64 bits: opening the model has checked it. */
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

/* A component's index in zt_model.components, which identifies it within the model. */
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
