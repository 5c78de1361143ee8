/* PyTorch: one tensor of the pickle becomes an object.
 *
 * A tensor in row-major order without gaps is a range of the file; any other is gathered when it is
 * read (ZT_ENCODING_STRIDED). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/attribute_list.h"
#include "formats/pytorch/pytorch.h"

/* "crc32:" and eight digits. */
#define DIGEST_LENGTH 14
/* Names and digests are packed into pieces of the arena. */
#define NAMES_PIECE_BYTES 4096
/* What expanded tensors may come to: this, and so many times the file. */
#define EXPANDED_BASE   ((uint64_t)64 << 20)
#define EXPANDED_FACTOR 1024

enum zt_status pytorch_keep_text(struct pytorch_reading *reading, struct zt_text text,
                                 const char **out_bytes, struct zt_error *error)
{
    if (text.length > reading->names_left) {
        void *piece;
        enum zt_status status = zt_arena_take(&reading->builder->model->storage->arena,
                                              NAMES_PIECE_BYTES, &piece, error);

        if (status != ZT_OK)
            return status;
        reading->names_at = piece;
        reading->names_left = NAMES_PIECE_BYTES;
    }
    assert(text.length <= reading->names_left);
    memcpy(reading->names_at, text.bytes, text.length);
    *out_bytes = reading->names_at;
    reading->names_at += text.length;
    reading->names_left -= text.length;
    return ZT_OK;
}

/* --- components --- */

/* A part of an object on its way into the model. */
struct part {
    const char *name;
    const struct pickle_tensor *tensor;
    struct pytorch_blob blob;
    uint64_t elements;
    uint64_t first; /* of the tensor's first byte in the blob */
    uint64_t span;  /* bytes from the first to the last element */
    bool is_row_major;
};

static void measure(struct part *part)
{
    const struct pickle_tensor *tensor = part->tensor;
    uint64_t last = 0;

    part->elements = 1;
    part->is_row_major = true;
    for (unsigned i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] > 1 && tensor->strides[i] != part->elements)
            part->is_row_major = false;
        part->elements *= tensor->shape[i];
        last += (tensor->shape[i] - (tensor->shape[i] > 0)) * tensor->strides[i];
    }
    if (part->elements == 0) {
        part->is_row_major = true;
        part->first = part->span = 0;
        return;
    }
    part->first += tensor->offset * tensor->type->width_bytes;
    part->span = (last + 1) * tensor->type->width_bytes;
    assert(part->span <= part->blob.length && part->first <= part->blob.length - part->span);
}

/* The shape and strides of a tensor that is not row-major, or not in a range of the file. */
static enum zt_status arrange(struct pytorch_reading *reading, const struct part *part,
                              struct zt_component *component, struct zt_error *error)
{
    const struct pickle_tensor *tensor = part->tensor;
    const size_t bytes = tensor->rank * sizeof(uint64_t);
    struct zt_arrangement *arrangement;
    uint64_t *numbers;
    void *held;
    enum zt_status status = zt_arena_take(&reading->builder->model->storage->arena,
                                          sizeof(*arrangement) + 2 * bytes, &held, error);

    if (status != ZT_OK)
        return status;
    arrangement = held;
    numbers = (uint64_t *)(arrangement + 1);
    *arrangement = (struct zt_arrangement){
        .rank = tensor->rank,
        .flip = tensor->flip,
        .shape = numbers,
        .strides = part->is_row_major ? NULL : numbers + tensor->rank,
        .partial = part->blob.is_deflated && part->span != part->blob.length,
        .skipped_bytes = part->blob.is_deflated ? part->first : 0};
    memcpy(numbers, tensor->shape, bytes);
    memcpy(numbers + tensor->rank, tensor->strides, bytes);
    component->arrangement = arrangement;
    return ZT_OK;
}

static void set_encoding(struct zt_component *component, enum zt_encoding encoding,
                         const char *name)
{
    component->encoding = (uint8_t)encoding;
    component->encoding_name = name;
    component->encoding_length = (uint32_t)strlen(name);
}

static enum zt_status place_bytes(struct pytorch_reading *reading, const struct part *part,
                                  struct zt_component *component, struct zt_error *error)
{
    const bool is_plain = part->is_row_major && part->tensor->flip == ZT_FLIP_NONE;

    component->offset = part->blob.offset;
    component->big_endian = reading->is_big_endian;
    component->decoded_length = part->elements * part->tensor->type->width_bytes;
    set_encoding(component, ZT_ENCODING_RAW, "raw");
    if (part->elements == 0)
        return ZT_OK;
    if (part->blob.is_deflated) {
        component->length = part->blob.stored_length;
        set_encoding(component, ZT_ENCODING_DEFLATE, "deflate");
        return arrange(reading, part, component, error);
    }
    component->offset += part->first;
    component->length = part->span;
    if (is_plain)
        return ZT_OK;
    set_encoding(component, ZT_ENCODING_STRIDED, "strided");
    return arrange(reading, part, component, error);
}

/* The entry's CRC-32 is the digest of a component that takes the whole entry. */
static enum zt_status set_digest(struct pytorch_reading *reading, const struct part *part,
                                 struct zt_component *component, struct zt_error *error)
{
    const bool is_plain = part->is_row_major && part->tensor->flip == ZT_FLIP_NONE;
    char text[DIGEST_LENGTH + 1];

    if (!part->blob.has_digest || part->elements == 0 || part->span != part->blob.length ||
        (part->blob.is_deflated && !is_plain))
        return ZT_OK;
    snprintf(text, sizeof(text), "crc32:%08" PRIx32, part->blob.crc32);
    component->digest_length = DIGEST_LENGTH;
    return pytorch_keep_text(reading, (struct zt_text){text, DIGEST_LENGTH}, &component->digest,
                             error);
}

/* Types that are not the library's keep torch's name. */
static void set_type(const struct torch_type *type, struct zt_component *component)
{
    component->dtype = type->dtype;
    component->logical = type->logical;
    component->type = type->logical == ZT_LOGICAL_UNKNOWN
                          ? type->name
                          : zt_logical_name((enum zt_logical)type->logical);
    component->type_length = component->type != NULL ? (uint32_t)strlen(component->type) : 0;
}

/* Bounds what tensors of few bytes can be made to look like. */
static enum zt_status count_expanded(struct pytorch_reading *reading, const struct part *part,
                                     struct zt_error *error)
{
    const uint64_t length = part->elements * part->tensor->type->width_bytes;
    const uint64_t file_size = reading->builder->model->file_size;

    if (length <= part->blob.length)
        return ZT_OK;
    reading->expanded_bytes += length;
    if (length <= EXPANDED_BASE + EXPANDED_FACTOR * file_size &&
        reading->expanded_bytes <= EXPANDED_BASE + EXPANDED_FACTOR * file_size)
        return ZT_OK;
    return pickle_fail(&reading->pickle, part->tensor->position, "pt §Tensor Expanded", error,
                       "%" PRIu64 " bytes of a storage of %" PRIu64
                       ": such tensors take more than 64 MiB and 1024 times the file",
                       length, part->blob.length);
}

static enum zt_status add_part(struct pytorch_reading *reading, const char *name,
                               const struct pickle_tensor *tensor, struct zt_error *error)
{
    struct part part = {.name = name, .tensor = tensor};
    struct pickle_storage storage;
    struct zt_component *component = NULL;
    enum zt_status status;

    pickle_storage_read(&reading->pickle, tensor->storage, &storage);
    reading->find(reading->storages, storage.place, &part.blob);
    part.first = storage.view_offset * storage.type->width_bytes;
    measure(&part);
    status = count_expanded(reading, &part, error);
    if (status == ZT_OK)
        status = zt_builder_component(reading->builder, &component, error);
    if (status != ZT_OK)
        return status;
    component->name = name;
    component->name_length = (uint32_t)strlen(name);
    set_type(tensor->type, component);
    status = place_bytes(reading, &part, component, error);
    return status == ZT_OK ? set_digest(reading, &part, component, error) : status;
}

/* Indices are integers from 0 on: what else they hold, verification finds. */
static enum zt_status add_value(struct pytorch_reading *reading, const char *name,
                                pickle_value value, bool is_index, struct zt_error *error)
{
    struct pickle_tensor tensor;
    struct zt_component *component;
    enum zt_status status;

    pickle_tensor_read(&reading->pickle, value, &tensor);
    status = add_part(reading, name, &tensor, error);
    if (status != ZT_OK || !is_index)
        return status;
    component = zt_last_component(reading->builder);
    component->dtype = component->dtype == ZT_I64 ? ZT_U64 : ZT_U32;
    return ZT_OK;
}

/* --- attributes --- */

static void put_number(struct zt_buffer *buffer, const struct pickle *pickle, pickle_value value)
{
    bool negative;
    uint64_t magnitude;

    if (pickle_kind_of(value) == PICKLE_FLOAT) {
        zt_cbor_put_float(buffer, pickle_float(pickle, value));
        return;
    }
    magnitude = pickle_magnitude(pickle, value, &negative);
    if (negative && magnitude > 0)
        zt_cbor_put_nint(buffer, magnitude - 1);
    else
        zt_cbor_put_uint(buffer, magnitude);
}

static enum zt_status keep_attributes(struct pytorch_reading *reading,
                                      const struct zt_attribute_list *list, struct zt_error *error)
{
    struct zt_object *object = zt_last_object(reading->builder);
    struct zt_text map = {NULL, 0};
    enum zt_status status = zt_attribute_list_keep(list, reading->builder, &map, error);

    if (status != ZT_OK)
        return status;
    object->attributes = (const uint8_t *)map.bytes;
    object->attributes_length = (uint32_t)map.length;
    return ZT_OK;
}

static enum zt_status add_attributes(struct pytorch_reading *reading,
                                     const struct pickle_tensor *tensor, struct zt_error *error)
{
    struct zt_attribute_list list = {0};
    enum zt_status status;

    if (tensor->form == PICKLE_PER_CHANNEL) {
        status = zt_attribute_list_key(&list, zt_text_from("axis"), error);
        zt_cbor_put_uint(&list.pairs, tensor->axis);
    } else {
        status = zt_attribute_list_key(&list, zt_text_from("scale"), error);
        put_number(&list.pairs, &reading->pickle, tensor->scale);
        if (status == ZT_OK)
            status = zt_attribute_list_key(&list, zt_text_from("zero_point"), error);
        put_number(&list.pairs, &reading->pickle, tensor->zero_point);
    }
    if (status == ZT_OK)
        status = keep_attributes(reading, &list, error);
    zt_attribute_list_free(&list);
    return status;
}

/* --- objects --- */

static enum zt_status add_object(struct pytorch_reading *reading, struct zt_text name,
                                 const struct pickle_tensor *tensor, struct zt_error *error)
{
    static const struct {
        const char *name;
        enum zt_layout layout;
    } layouts[] = {[PICKLE_DENSE] = {"dense", ZT_LAYOUT_DENSE},
                   [PICKLE_QUANTIZED] = {"dense", ZT_LAYOUT_DENSE},
                   [PICKLE_PER_CHANNEL] = {"torch.per_channel_affine", ZT_LAYOUT_OTHER},
                   [PICKLE_COO] = {"sparse_coo", ZT_LAYOUT_SPARSE_COO},
                   [PICKLE_CSR] = {"sparse_csr", ZT_LAYOUT_SPARSE_CSR}};
    const bool is_paired = tensor->type != NULL && tensor->type->logical == ZT_LOGICAL_F4_E2M1;
    struct zt_object *object;
    enum zt_status status = zt_builder_object(reading->builder, &object, error);

    if (status != ZT_OK)
        return status;
    object->name_length = (uint32_t)name.length;
    object->format = layouts[tensor->form].name;
    object->format_length = (uint32_t)strlen(object->format);
    object->layout = (uint8_t)layouts[tensor->form].layout;
    status = pytorch_keep_text(reading, name, &object->name, error);
    for (unsigned i = 0; i < tensor->rank && status == ZT_OK; i++)
        status = zt_builder_dimension(
            reading->builder, tensor->shape[i] << (is_paired && i == tensor->rank - 1u), error);
    return status;
}

static enum zt_status add_parts(struct pytorch_reading *reading, const struct pickle_tensor *tensor,
                                struct zt_error *error)
{
    static const char *const names[][3] = {[PICKLE_PER_CHANNEL] = {"scales", "zero_points", NULL},
                                           [PICKLE_COO] = {"coords", "values", NULL},
                                           [PICKLE_CSR] = {"indptr", "indices", "values"}};
    const unsigned count = tensor->form == PICKLE_CSR ? 3 : 2;
    const unsigned index_count = tensor->form == PICKLE_PER_CHANNEL ? 0 : count - 1;
    enum zt_status status = ZT_OK;

    for (unsigned i = 0; i < count && status == ZT_OK; i++)
        status =
            add_value(reading, names[tensor->form][i], tensor->parts[i], i < index_count, error);
    return status;
}

/* A storage by itself is a tensor of one dimension. */
static void read_storage(const struct pickle *pickle, pickle_value value,
                         struct pickle_tensor *out_tensor)
{
    struct pickle_storage storage;

    pickle_storage_read(pickle, pickle_index_of(value), &storage);
    out_tensor->form = PICKLE_DENSE;
    out_tensor->type = storage.type;
    out_tensor->storage = storage.index;
    out_tensor->position = storage.position;
    out_tensor->rank = 1;
    out_tensor->flip = ZT_FLIP_NONE;
    out_tensor->offset = 0;
    out_tensor->shape[0] = storage.view_count;
    out_tensor->strides[0] = 1;
}

enum zt_status pytorch_tensor_add(struct pytorch_reading *reading, struct zt_text name,
                                  pickle_value value, struct zt_error *error)
{
    struct pickle_tensor tensor;
    enum zt_status status;

    if (pickle_kind_of(value) == PICKLE_STORAGE)
        read_storage(&reading->pickle, value, &tensor);
    else
        pickle_tensor_read(&reading->pickle, value, &tensor);
    status = add_object(reading, name, &tensor, error);
    if (status == ZT_OK && tensor.type != NULL)
        status = add_part(reading, "data", &tensor, error);
    if (status == ZT_OK && tensor.form >= PICKLE_PER_CHANNEL)
        status = add_parts(reading, &tensor, error);
    if (status == ZT_OK && (tensor.form == PICKLE_QUANTIZED || tensor.form == PICKLE_PER_CHANNEL))
        status = add_attributes(reading, &tensor, error);
    return status;
}

/* --- the model's memory --- */

/* What a manifest of n bytes may take is 16 n + 1 MiB (zt_model_open). One n is the manifest. */
#define MEMORY_FACTOR 15
#define MEMORY_BASE   ((uint64_t)768 << 10)

void pytorch_set_budget(struct pytorch_reading *reading, uint64_t manifest_bytes,
                        uint64_t other_bytes)
{
    const uint64_t most = MEMORY_FACTOR * manifest_bytes + MEMORY_BASE;
    /* Keys are two words or more apart, and comparing them takes 8 bytes each. */
    const uint64_t keys_bytes = sizeof(uint32_t) * (uint64_t)reading->pickle.arena.count;
    const uint64_t taken = pickle_held_bytes(&reading->pickle) + keys_bytes + other_bytes;
    const uint64_t left = taken < most ? most - taken : 0;
    struct zt_builder *builder = reading->builder;

    builder->budget_bytes = left / 3 * 2;
    if (builder->budget_bytes < builder->held_bytes)
        builder->budget_bytes = builder->held_bytes;
    builder->model->storage->arena.budget_bytes = (size_t)(left / 3);
}

enum zt_status pytorch_drop_manifest(void *state, struct zt_model *model, struct zt_error *error)
{
    (void)state;
    (void)error;
    free(model->storage->manifest);
    model->storage->manifest = NULL;
    return ZT_OK;
}
