/* GGUF: the types of tensors, and the tensors' entries. */
#include "formats/gguf/gguf.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "model/layout.h"
#include "model/model_build.h"

#define TENSOR_BOUNDS "gguf §Tensor Bounds"
/* The specification's bound on dimensions. */
#define RANK_MAX 4

/* --- types --- */

/* A tensor's type. Tensors of plain types are dense; all others consist of blocks, which only their
 * layout describes. */
struct tensor_type {
    const char *name;
    const char *layout; /* NULL for plain types */
    uint32_t elements_per_block;
    uint32_t block_bytes;
    enum zt_dtype dtype; /* ZT_U8 for blocks */
};

#define PLAIN(name, dtype, bytes)   \
    {                               \
        name, NULL, 1, bytes, dtype \
    }
#define BLOCK(name, elements, bytes)                    \
    {                                                   \
        name, "gguf." name "/1", elements, bytes, ZT_U8 \
    }

/* 4, 5, 31 to 33 and 36 to 38 were removed from the format. Block sizes follow ggml's
 * structures. */
static const struct tensor_type types[GGUF_TYPE_COUNT] = {
    [0] = PLAIN("f32", ZT_F32, 4),    [1] = PLAIN("f16", ZT_F16, 2),
    [2] = BLOCK("q4_0", 32, 18),      [3] = BLOCK("q4_1", 32, 20),
    [6] = BLOCK("q5_0", 32, 22),      [7] = BLOCK("q5_1", 32, 24),
    [8] = BLOCK("q8_0", 32, 34),      [9] = BLOCK("q8_1", 32, 36),
    [10] = BLOCK("q2_k", 256, 84),    [11] = BLOCK("q3_k", 256, 110),
    [12] = BLOCK("q4_k", 256, 144),   [13] = BLOCK("q5_k", 256, 176),
    [14] = BLOCK("q6_k", 256, 210),   [15] = BLOCK("q8_k", 256, 292),
    [16] = BLOCK("iq2_xxs", 256, 66), [17] = BLOCK("iq2_xs", 256, 74),
    [18] = BLOCK("iq3_xxs", 256, 98), [19] = BLOCK("iq1_s", 256, 50),
    [20] = BLOCK("iq4_nl", 32, 18),   [21] = BLOCK("iq3_s", 256, 110),
    [22] = BLOCK("iq2_s", 256, 82),   [23] = BLOCK("iq4_xs", 256, 136),
    [24] = PLAIN("i8", ZT_I8, 1),     [25] = PLAIN("i16", ZT_I16, 2),
    [26] = PLAIN("i32", ZT_I32, 4),   [27] = PLAIN("i64", ZT_I64, 8),
    [28] = PLAIN("f64", ZT_F64, 8),   [29] = BLOCK("iq1_m", 256, 56),
    [30] = PLAIN("bf16", ZT_BF16, 2), [34] = BLOCK("tq1_0", 256, 54),
    [35] = BLOCK("tq2_0", 256, 66),   [39] = BLOCK("mxfp4", 32, 17),
    [40] = BLOCK("nvfp4", 64, 36),    [41] = BLOCK("q1_0", 128, 18),
    [42] = BLOCK("q2_0", 64, 18),
};

/* Returns NULL for numbers that are not a type or whose type was removed from the format. */
static const struct tensor_type *find_type(uint32_t number)
{
    return number < GGUF_TYPE_COUNT && types[number].name != NULL ? &types[number] : NULL;
}

/* --- one entry --- */

/* An entry as stored in the file, and the positions of its fields. */
struct entry {
    struct zt_text name;
    uint32_t rank;
    uint64_t shape[RANK_MAX]; /* slowest first, unlike in the file */
    uint32_t type_number;
    const struct tensor_type *type;
    uint64_t offset; /* relative to the data */
    uint64_t rank_at;
    uint64_t offset_at;
};

static enum zt_status take_rank(struct zt_cursor *cursor, uint32_t *out_rank,
                                struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint32_t rank;
    enum zt_status status = zt_cursor_u32(cursor, &rank, error);

    if (status != ZT_OK)
        return status;
    if (rank > RANK_MAX)
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Rank", at,
                       "%" PRIu32 " dimensions, more than %d", rank, RANK_MAX);
    *out_rank = rank;
    return ZT_OK;
}

enum zt_status gguf_tensors_skip(struct zt_cursor *cursor, uint64_t count, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    cursor->bounds_rule = TENSOR_BOUNDS;
    for (uint64_t i = 0; i < count && status == ZT_OK; i++) {
        uint64_t length = 0;
        uint32_t rank = 0;

        status = gguf_check_size(cursor, error);
        if (status == ZT_OK)
            status = gguf_take_length(cursor, &length, error);
        if (status == ZT_OK)
            status = zt_cursor_skip(cursor, length, error);
        if (status == ZT_OK)
            status = take_rank(cursor, &rank, error);
        if (status == ZT_OK) /* the dimensions, the type and the offset */
            status = zt_cursor_skip(cursor, 8 * (uint64_t)rank + 4 + 8, error);
    }
    return status;
}

static enum zt_status take_type(struct zt_cursor *cursor, struct entry *entry,
                                struct zt_error *error)
{
    uint64_t at = cursor->position;
    enum zt_status status = zt_cursor_u32(cursor, &entry->type_number, error);

    if (status != ZT_OK)
        return status;
    entry->type = find_type(entry->type_number);
    if (entry->type == NULL)
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Type", at,
                       "tensor type %" PRIu32 " is not known, or was removed", entry->type_number);
    return ZT_OK;
}

/* Reads what follows the name. */
static enum zt_status take_fields(struct zt_cursor *cursor, struct entry *entry,
                                  struct zt_error *error)
{
    enum zt_status status;

    entry->rank_at = cursor->position;
    status = take_rank(cursor, &entry->rank, error);
    for (uint32_t i = 0; i < entry->rank && status == ZT_OK; i++)
        status = zt_cursor_u64(cursor, &entry->shape[entry->rank - 1 - i], error);
    if (status == ZT_OK)
        status = take_type(cursor, entry, error);
    entry->offset_at = cursor->position;
    return status == ZT_OK ? zt_cursor_u64(cursor, &entry->offset, error) : status;
}

/* --- rules --- */

static enum zt_status count_bytes(const struct entry *entry, uint64_t *out_bytes,
                                  struct zt_error *error)
{
    uint64_t elements;
    uint64_t fastest = entry->rank > 0 ? entry->shape[entry->rank - 1] : 1;

    assert(entry->type->elements_per_block > 0);
    if (!zt_shape_product(entry->shape, entry->rank, &elements))
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Shape", entry->rank_at,
                       "the number of elements does not fit in 64 bits");
    if (fastest % entry->type->elements_per_block != 0)
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Shape", entry->rank_at,
                       "rows of %" PRIu64 " elements are not whole blocks of %" PRIu32, fastest,
                       entry->type->elements_per_block);
    if (__builtin_mul_overflow(elements / entry->type->elements_per_block, entry->type->block_bytes,
                               out_bytes))
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Shape", entry->rank_at,
                       "the tensor's bytes do not fit in 64 bits");
    return ZT_OK;
}

static enum zt_status check_place(const struct gguf_reading *reading, const struct entry *entry,
                                  uint64_t length, struct zt_error *error)
{
    uint64_t size = reading->builder->model->file_size;

    assert(reading->alignment > 0);
    if (entry->offset % reading->alignment != 0)
        return zt_fail(error, ZT_INVALID, "gguf §Data BlobAlignment", entry->offset_at,
                       "the offset %" PRIu64 " is not a multiple of %" PRIu32, entry->offset,
                       reading->alignment);
    if (reading->data_offset > size || entry->offset > size - reading->data_offset ||
        length > size - reading->data_offset - entry->offset)
        return zt_fail(error, ZT_INVALID, "gguf §Data BlobBounds", entry->offset_at,
                       CUT_OFF "%" PRIu64 " bytes at %" PRIu64
                               " of the data, which begins at %" PRIu64
                               ", do not end in a file of %" PRIu64,
                       length, entry->offset, reading->data_offset, size);
    return ZT_OK;
}

/* --- adding --- */

/* Makes the attributes of a type's tensors, with keys in the order of deterministic CBOR. */
static enum zt_status make_attributes(const struct gguf_reading *reading,
                                      const struct tensor_type *type,
                                      struct zt_text *out_attributes, struct zt_error *error)
{
    struct zt_attribute_list list = {0};
    enum zt_status status = zt_attribute_list_key(&list, zt_text_from("block_bytes"), error);

    if (status == ZT_OK) {
        zt_cbor_put_uint(&list.pairs, type->block_bytes);
        status = zt_attribute_list_key(&list, zt_text_from("elems_per_block"), error);
    }
    if (status == ZT_OK) {
        zt_cbor_put_uint(&list.pairs, type->elements_per_block);
        status = zt_attribute_list_keep(&list, reading->builder, out_attributes, error);
    }
    zt_attribute_list_free(&list);
    return status;
}

static enum zt_status set_block_layout(struct gguf_reading *reading, const struct entry *entry,
                                       struct zt_error *error)
{
    struct zt_object *object = zt_last_object(reading->builder);
    struct zt_text *attributes = &reading->type_attributes[entry->type_number];

    assert(entry->type_number < GGUF_TYPE_COUNT);
    if (attributes->length == 0) {
        enum zt_status status = make_attributes(reading, entry->type, attributes, error);

        if (status != ZT_OK)
            return status;
    }
    object->format = entry->type->layout;
    object->format_length = (uint32_t)strlen(entry->type->layout);
    object->layout = ZT_LAYOUT_GGUF;
    object->attributes = (const uint8_t *)attributes->bytes;
    object->attributes_length = (uint32_t)attributes->length;
    return ZT_OK;
}

static enum zt_status add_tensor(struct gguf_reading *reading, const struct entry *entry,
                                 uint64_t length, struct zt_error *error)
{
    struct zt_tensor tensor = {.name = entry->name,
                               .rank = (uint8_t)entry->rank,
                               .logical = ZT_LOGICAL_NONE,
                               .offset = reading->data_offset + entry->offset,
                               .length = length};
    enum zt_status status;

    assert(entry->rank <= RANK_MAX && entry->type != NULL);
    tensor.dtype = entry->type->dtype;
    memcpy(tensor.shape, entry->shape, sizeof(entry->shape));
    status = zt_tensor_add(reading->builder, &tensor, error);
    return status == ZT_OK && entry->type->layout != NULL ? set_block_layout(reading, entry, error)
                                                          : status;
}

static enum zt_status read_tensor(struct gguf_reading *reading, struct zt_error *error)
{
    /* Programs that run models take at most 63 bytes; longer names are read here. */
    static const struct gguf_name_rule name_rule = {"a name", "gguf §Tensor Name", 1024};
    struct entry entry = {0};
    uint64_t length = 0;
    enum zt_status status = gguf_take_name(&reading->cursor, &name_rule, &entry.name, error);

    if (status != ZT_OK)
        return status;
    status = take_fields(&reading->cursor, &entry, error);
    if (status == ZT_OK)
        status = count_bytes(&entry, &length, error);
    if (status == ZT_OK)
        status = check_place(reading, &entry, length, error);
    if (status == ZT_OK)
        status = add_tensor(reading, &entry, length, error);
    if (status != ZT_OK)
        zt_error_within(error, entry.name, (struct zt_text){NULL, 0});
    return status;
}

enum zt_status gguf_tensors_read(struct gguf_reading *reading, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    reading->cursor.bounds_rule = TENSOR_BOUNDS;
    for (uint64_t i = 0; i < reading->tensor_count && status == ZT_OK; i++)
        status = read_tensor(reading, error);
    return status;
}
