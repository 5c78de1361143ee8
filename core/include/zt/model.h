/* The model: a container of any format, opened and validated.
 *
 * A model has named objects, each with a shape, a layout and components. A component is a run of
 * stored bytes and their type. A model never changes, is freed as a whole, and may be read by many
 * threads at once. The structures are compact because some models have a million objects: texts
 * point into the manifest's bytes, and shapes and components are found in the model's arrays by the
 * functions below. */
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
    ZT_FORMAT_NPY,
    ZT_FORMAT_PYTORCH,
    ZT_FORMAT_ONNX
};

/* Layouts whose rules the library knows. Objects of any other layout are listed, and only their
 * components' bytes can be read. */
enum zt_layout {
    ZT_LAYOUT_OTHER,
    ZT_LAYOUT_DENSE,
    ZT_LAYOUT_SPARSE_CSR,
    ZT_LAYOUT_SPARSE_COO,
    ZT_LAYOUT_QUANT_GROUP,
    ZT_LAYOUT_MX,
    ZT_LAYOUT_GGUF,
    /* Sparse tensors of zTensor 0.1, which have the single component "data" (its section on sparse
     * data). */
    ZT_LAYOUT_ZT01_COO,
    ZT_LAYOUT_ZT01_CSR
};

enum zt_encoding {
    ZT_ENCODING_RAW,
    ZT_ENCODING_ZSTD,
    ZT_ENCODING_ZSTD_SEEKABLE,
    /* A deflated entry of a ZIP archive (NPZ, PyTorch). */
    ZT_ENCODING_DEFLATE,
    /* A view of a PyTorch storage whose elements are not in row-major order without gaps, or whose
     * signs must be flipped: zt_component.length is the span from the first to the last element. */
    ZT_ENCODING_STRIDED,
    /* Integers of ONNX, each of them a varint of 1 to 10 bytes. */
    ZT_ENCODING_VARINT,
    /* Numbers of ONNX in several protobuf fields, or not packed: zt_component.length is the span
     * from the first field's tag to the last field's end. */
    ZT_ENCODING_PROTOBUF,
    /* An encoding that this library cannot decode: only the stored bytes can be read. */
    ZT_ENCODING_UNKNOWN
};

/* Signs that PyTorch flips when a tensor is read: its storage holds the values before that. */
enum zt_sign_flip {
    ZT_FLIP_NONE,
    ZT_FLIP_IMAGINARY, /* of every complex number's second half */
    ZT_FLIP_ALL,       /* of every word; integers are negated */
    ZT_FLIP_REAL       /* of every complex number's first half */
};

/* How the stored bytes of NPY, NPZ and PyTorch differ from the tensor's bytes, apart from
 * compression and byte order. */
struct zt_arrangement {
    /* Length in bytes of the NPY header before the data: at the start of a deflated entry's stream,
     * otherwise in the file right before zt_component.offset. It is not part of the tensor, but the
     * digest of a ZIP entry covers it. */
    uint32_t lead_bytes;
    /* The data is in Fortran order and is transposed when decoded. rank and shape are those of the
     * tensor. */
    bool fortran;
    uint8_t rank;
    uint8_t flip; /* enum zt_sign_flip; of PyTorch */
    const uint64_t *shape;
    /* Of PyTorch; NULL: row-major without gaps. For each dimension, how many elements its
     * neighbours are apart; 0 and overlaps are allowed. Where two elements share a byte, shape and
     * strides count bytes instead. */
    const uint64_t *strides;
    /* Of a view into a deflated storage: how many of its inflated bytes come before the view, and
     * whether others may follow it. The view need not be checked by the stream's end then. */
    uint64_t skipped_bytes;
    bool partial;
};

/* zt_component.decoded_length if only decoding can find it. */
#define ZT_LENGTH_UNKNOWN UINT64_MAX

struct zt_component {
    const char *name;
    /* Texts as in the file; NULL if absent. encoding_name is never NULL: it is "raw" if the file
     * states none. */
    const char *type;
    const char *encoding_name;
    const char *digest;
    /* NULL except for NPY, NPZ and PyTorch. */
    const struct zt_arrangement *arrangement;
    /* The stored bytes in their file: absolute position and length in bytes. */
    uint64_t offset;
    uint64_t length;
    /* Equal to length for raw; ZT_LENGTH_UNKNOWN if the file does not state it. */
    uint64_t decoded_length;
    uint32_t name_length;
    uint32_t type_length;
    uint32_t encoding_length;
    uint32_t digest_length;
    /* The file that holds the bytes. 0: the model's own; n: shard n - 1 of the model's shard
     * table. */
    uint32_t shard;
    uint8_t dtype;    /* enum zt_dtype */
    uint8_t logical;  /* enum zt_logical */
    uint8_t encoding; /* enum zt_encoding */
    /* Stored big-endian (zTensor 0.1, NPY, PyTorch): words are swapped when the component is
     * decoded. */
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

/* The kind of a model's other files, which decides how they are found and checked (zt/shards.h). */
enum zt_shard_kind {
    ZT_SHARD_CONTAINER, /* of zTensor 2: has exactly the stated size and digest */
    ZT_SHARD_PART,      /* a model itself, joined with others (zt/join.h) */
    ZT_SHARD_DATA       /* external data of ONNX: any file that is large enough */
};

/* Another file that holds components of a model. */
struct zt_shard {
    const char *name;
    const char *digest; /* NULL: none is stated */
    uint64_t size_bytes;
    uint32_t name_length;
    uint32_t digest_length;
    uint8_t kind; /* enum zt_shard_kind */
};

struct zt_model {
    enum zt_format format;
    /* "zt", "mag", "safetensors", "gguf", "npz", "npy", "pytorch" or "onnx". */
    const char *format_name;
    /* "0.1.0", the file's own text (zTensor 1.x) or "2"; "1", "100", "200" or "300" for mag, "2" or
     * "3" for gguf, "" for the other formats. */
    struct zt_text version;
    /* The bytes of a CBOR map; empty if the file has no attributes. */
    struct zt_text attributes;
    const struct zt_object *objects; /* sorted by name, bytewise */
    uint32_t object_count;
    uint32_t component_count;
    /* The components of one object are adjacent and sorted by name, bytewise. */
    const struct zt_component *components;
    const uint64_t *dimensions;
    const struct zt_shard *shards; /* sorted by name, bytewise */
    uint32_t shard_count;
    uint64_t file_size;
    /* Of a PyTorch archive, 0, and the length of directory and pickle, which lie apart. */
    uint64_t manifest_offset;
    uint64_t manifest_length;
    /* XXH3-64 of the manifest's bytes, in every format. */
    uint64_t manifest_hash;
    /* Owns the texts and attributes; private to the library. */
    struct zt_model_storage *storage;
};

/* Opens a container of any format, which is detected by its content. Reads only head, tail and
 * manifest, and checks every rule that does not need the data (docs/rules/). The source is borrowed
 * for this call only. Takes at most 16 n bytes + 1 MiB of memory for a manifest of n bytes,
 * independent of the sizes that it declares. ZT_INVALID with rule and offset if a rule is broken or
 * the content is of no known format; ZT_UNSUPPORTED for a known format that the library does not
 * read; ZT_DATA_SHARD for a valid zTensor 2 container without a manifest; ZT_LIMIT, ZT_NO_MEMORY,
 * ZT_IO. Freed with zt_model_free. */
enum zt_status zt_model_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error);

/* Bounds the memory that each model may take which is opened from now on; ZT_LIMIT beyond it. There
 * is no bound at first, apart from the one above. For programs, at their start. */
void zt_model_set_memory_limit(uint64_t bytes);
uint64_t zt_model_memory_limit(void);

/* Takes NULL. */
void zt_model_free(struct zt_model *model);

/* Look up an object, or a component of an object, by name. NULL if there is none. The result is
 * borrowed from the model. */
const struct zt_object *zt_model_find(const struct zt_model *model, struct zt_text name);
const struct zt_component *zt_object_find(const struct zt_model *model,
                                          const struct zt_object *object, struct zt_text name);

/* Whether decoding swaps bytes: words are stored big-endian and have more than one byte. */
bool zt_component_is_swapped(const struct zt_component *component);
/* Whether decoding transposes: the component is in Fortran order, and this differs from row-major
 * order because at least two dimensions are not 1. */
bool zt_component_is_transposed(const struct zt_component *component);
/* Whether the decoded bytes equal the stored bytes, so that the file's own bytes can be sent. */
bool zt_component_is_plain(const struct zt_component *component);

/* Whether digests cover stored bytes (zTensor up to 1.2) rather than decoded ones (zTensor 2). True
 * also for NPZ and PyTorch, although the CRC-32 of a ZIP entry covers neither: it covers the
 * inflated entry, which includes the NPY header and has the stored byte and element order. */
bool zt_digest_covers_stored(const struct zt_model *model);

/* Whether digests are the CRC-32 of ZIP entries. */
bool zt_digest_covers_entries(const struct zt_model *model);

/* The digest that a component states. ZT_UNSUPPORTED if it states none or uses an algorithm unknown
 * to its format; ZT_CORRUPT if the digest is malformed. */
enum zt_status zt_component_digest(const struct zt_model *model,
                                   const struct zt_component *component,
                                   struct zt_digest *out_digest, struct zt_error *error);

/* Returns the SHA-256 that a component states, if it covers exactly the decoded bytes; false if
 * there is none. */
bool zt_component_decoded_sha256(const struct zt_model *model, const struct zt_component *component,
                                 uint8_t out_sha256[32]);

/* The product of the shape. It fits in 64 bits, as zt_model_open has checked. */
uint64_t zt_object_elements(const struct zt_model *model, const struct zt_object *object);

/* The sum of these products over all objects: the number of a model's parameters. False if it does
 * not fit in 64 bits, as hostile or sparse shapes may have it. */
bool zt_model_elements(const struct zt_model *model, uint64_t *out_elements);

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
