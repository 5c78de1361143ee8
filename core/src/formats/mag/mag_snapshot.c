/* Snapshots (.mag versions 100 and 200): header, strings "SRP!", metadata "MDT!" (empty so far),
 * tensors "DSC!", data "BUF!".
 *
 * Names are strings of the pool. Data is in the order of the tensors' records and ends the file:
 * back to back in version 100, each at the next multiple of 16 in version 200. */
#include "formats/mag/mag.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "formats/formats.h"
#include "zt/digest.h"

#define HEADER_BYTES 32
#define CHECKSUM_AT  16
#define COVERED_FROM 20
#define OFFSETS_AT   40 /* of the strings' offsets, after tag and count */
#define RECORD_MIN   24
#define POOL_MAX     ((uint32_t)128 << 20)
#define RANK_LIMIT   64
#define TAG_BYTES    4
#define ALIGNMENT    16 /* of data in version 200, counted from the start of the file */

static_assert(RANK_LIMIT - 1 <= ZT_RANK_MAX, "a snapshot's ranks fit a model");

static const enum zt_dtype dtypes[] = {ZT_F32, ZT_F16, ZT_BF16, ZT_BOOL, ZT_U8,  ZT_I8,
                                       ZT_U16, ZT_I16, ZT_U32,  ZT_I32,  ZT_U64, ZT_I64};

struct snapshot {
    uint32_t version; /* MAG_VERSION_100 or MAG_VERSION_200 */
    uint32_t checksum;
    uint32_t tensor_count;
    uint32_t string_count;
    uint64_t pool_at; /* the strings' characters */
    uint32_t pool_length;
    uint64_t tensors_at;  /* the first record */
    uint64_t data_tag_at; /* "BUF!", where the bytes that the checksum covers end */
};

bool mag_is_snapshot(const uint8_t *head)
{
    return memcmp(head + HEADER_BYTES, "SRP!", 4) == 0;
}

/* --- where the sections are ---
 *
 * The survey goes over the file, what follows reads the manifest's bytes. A file that is changed
 * meanwhile breaks no bounds: they are checked again. */

static enum zt_status take_tag(struct zt_cursor *cursor, const char *tag, struct zt_error *error)
{
    const uint8_t *bytes;
    uint64_t at = cursor->position;
    enum zt_status status = zt_cursor_take(cursor, 4, &bytes, error);

    if (status == ZT_OK && memcmp(bytes, tag, 4) != 0)
        return zt_fail(error, ZT_INVALID, "mag §Snapshot Section", at,
                       "the section %s does not begin here", tag);
    return status;
}

static enum zt_status read_header(struct zt_cursor *cursor, struct snapshot *snapshot,
                                  struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status = zt_cursor_take(cursor, HEADER_BYTES, &bytes, error);

    if (status != ZT_OK)
        return status;
    snapshot->checksum = zt_load_le32(bytes + CHECKSUM_AT);
    snapshot->tensor_count = zt_load_le32(bytes + 28);
    if (zt_load_le32(bytes + 20) != 0)
        return zt_fail(error, ZT_INVALID, "mag §Header Reserved", 20, "the reserved word is not 0");
    if (zt_load_le32(bytes + 24) != 0)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, 24,
                       "a snapshot with metadata, which no release has written");
    return take_tag(cursor, "SRP!", error);
}

static enum zt_status pass_strings(struct zt_cursor *cursor, struct snapshot *snapshot,
                                   struct zt_error *error)
{
    enum zt_status status = zt_cursor_u32(cursor, &snapshot->string_count, error);

    if (status == ZT_OK)
        status = zt_cursor_skip(cursor, 4 * (uint64_t)snapshot->string_count, error);
    if (status == ZT_OK)
        status = zt_cursor_u32(cursor, &snapshot->pool_length, error);
    snapshot->pool_at = cursor->position;
    if (status == ZT_OK && snapshot->pool_length > POOL_MAX)
        return zt_fail(error, ZT_INVALID, "mag §Snapshot Strings", cursor->position - 4,
                       "strings of %" PRIu32 " bytes, more than 128 MiB", snapshot->pool_length);
    return status == ZT_OK ? zt_cursor_skip(cursor, snapshot->pool_length, error) : status;
}

static enum zt_status pass_tensors(struct zt_cursor *cursor, const struct snapshot *snapshot,
                                   struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    if (snapshot->tensor_count > zt_cursor_left(cursor) / RECORD_MIN)
        return zt_fail(error, ZT_INVALID, "mag §Header RecordCount", 28,
                       CUT_OFF "%" PRIu32 " tensors do not fit the file", snapshot->tensor_count);
    for (uint32_t i = 0; status == ZT_OK && i < snapshot->tensor_count; i++) {
        uint32_t packed = 0;

        status = zt_cursor_u32(cursor, &packed, error);
        if (status == ZT_OK)
            status = zt_cursor_skip(cursor, RECORD_MIN - 4 + 8 * (uint64_t)(packed & 0xFF), error);
    }
    return status;
}

/* Finds the sections. Their contents are read when the manifest is in memory. */
static enum zt_status survey(struct zt_cursor *cursor, struct snapshot *snapshot,
                             struct zt_error *error)
{
    enum zt_status status;

    cursor->bounds_rule = "mag §Snapshot Section";
    status = read_header(cursor, snapshot, error);
    if (status == ZT_OK)
        status = pass_strings(cursor, snapshot, error);
    if (status == ZT_OK)
        status = take_tag(cursor, "MDT!", error);
    if (status == ZT_OK)
        status = take_tag(cursor, "DSC!", error);
    snapshot->tensors_at = cursor->position;
    if (status == ZT_OK)
        status = pass_tensors(cursor, snapshot, error);
    snapshot->data_tag_at = cursor->position;
    return status == ZT_OK ? take_tag(cursor, "BUF!", error) : status;
}

/* --- strings --- */

static uint32_t string_offset(const struct zt_model *model, uint32_t number)
{
    return zt_load_le32(model->storage->manifest + OFFSETS_AT + 4 * (size_t)number);
}

/* Checks, before any name is looked up, that offsets begin with 0 and never decrease. */
static enum zt_status check_strings(const struct zt_model *model, const struct snapshot *snapshot,
                                    struct zt_error *error)
{
    uint32_t previous = 0;

    for (uint32_t i = 0; i <= snapshot->string_count; i++) {
        uint32_t offset = string_offset(model, i);

        if (offset < previous || (i == 0 && offset != 0) || offset - previous > MAG_KEY_MAX)
            return zt_fail(error, ZT_INVALID, "mag §Snapshot Strings", OFFSETS_AT + 4 * (uint64_t)i,
                           "an offset of a string decreases, or rises by more than 65535, or the "
                           "first one is not 0");
        previous = offset;
    }
    if (previous != snapshot->pool_length)
        return zt_fail(error, ZT_INVALID, "mag §Snapshot Strings",
                       OFFSETS_AT + 4 * (uint64_t)snapshot->string_count,
                       "the last offset of a string is not the length of all strings");
    return ZT_OK;
}

static enum zt_status find_name(const struct zt_model *model, const struct snapshot *snapshot,
                                uint32_t number, struct zt_tensor *tensor, struct zt_error *error)
{
    uint64_t at;

    if (number >= snapshot->string_count)
        return zt_fail(error, ZT_INVALID, "mag §Names Name", snapshot->tensors_at,
                       "a tensor's name is string %" PRIu32 " of %" PRIu32, number,
                       snapshot->string_count);
    at = snapshot->pool_at + string_offset(model, number);
    tensor->name =
        (struct zt_text){(const char *)model->storage->manifest + at,
                         string_offset(model, number + 1) - string_offset(model, number)};
    assert(at + tensor->name.length <= model->manifest_length);
    return mag_key_check(tensor->name, at, error);
}

/* --- tensors --- */

static bool find_type(const struct snapshot *snapshot, unsigned number, struct zt_tensor *tensor)
{
    if (snapshot->version == MAG_VERSION_200)
        return mag_type_find(number, tensor);
    if (number >= sizeof(dtypes) / sizeof(*dtypes))
        return false;
    tensor->dtype = dtypes[number];
    return true;
}

static enum zt_status read_shape(const uint8_t *record, uint64_t at, struct zt_tensor *tensor,
                                 struct zt_error *error)
{
    uint64_t elements = 1;
    enum zt_status status;

    assert(tensor->rank < RANK_LIMIT);
    for (unsigned i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = zt_load_le64(record + RECORD_MIN + 8 * i);
        if (tensor->shape[i] > INT64_MAX)
            return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at + RECORD_MIN + 8 * i,
                           "a dimension is negative");
    }
    status = mag_tensor_bytes(tensor, at + RECORD_MIN, &tensor->length, error);
    for (unsigned i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    if (status == ZT_OK && elements != zt_load_le64(record + 8))
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataSize", at + 8,
                       "the shape does not have %" PRIu64 " elements", zt_load_le64(record + 8));
    return status;
}

static enum zt_status read_tensor(const struct zt_model *model, const struct snapshot *snapshot,
                                  uint64_t at, struct zt_tensor *tensor, struct zt_error *error)
{
    const uint8_t *record = model->storage->manifest + at;
    uint64_t room = snapshot->data_tag_at - at;
    uint32_t packed = room >= RECORD_MIN ? zt_load_le32(record) : 0;
    unsigned dtype = packed >> 8 & 0xFF;
    enum zt_status status;

    assert(at <= snapshot->data_tag_at);
    tensor->rank = (uint8_t)(packed & 0xFF);
    if (room < RECORD_MIN + 8 * (uint64_t)tensor->rank)
        return zt_fail(error, ZT_INVALID, "mag §Snapshot Section", at,
                       "the record does not end before the data");
    if (packed >> 16 != 0)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Reserved", at,
                       "the upper bytes of a record's first word are not 0");
    if (tensor->rank >= RANK_LIMIT)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at, "a rank of %u", tensor->rank);
    if (!find_type(snapshot, dtype, tensor))
        return zt_fail(error, ZT_INVALID, "mag §Tensors Dtype", at, "the dtype %u is not known",
                       dtype);
    status = find_name(model, snapshot, zt_load_le32(record + 4), tensor, error);
    return status == ZT_OK ? read_shape(record, at, tensor, error) : status;
}

/* Where data may begin: at the position, or in version 200 at the next multiple of 16. */
static uint64_t data_from(const struct snapshot *snapshot, uint64_t position)
{
    if (snapshot->version == MAG_VERSION_200)
        return (position + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return position;
}

static enum zt_status add_tensors(struct zt_builder *builder, const struct snapshot *snapshot,
                                  struct zt_error *error)
{
    const struct zt_model *model = builder->model;
    uint64_t data = data_from(snapshot, snapshot->data_tag_at + TAG_BYTES);
    uint64_t at = snapshot->tensors_at;
    uint64_t end = data; /* of the previous tensor */

    for (uint32_t i = 0; i < snapshot->tensor_count; i++) {
        struct zt_tensor tensor = {.logical = ZT_LOGICAL_NONE};
        enum zt_status status = read_tensor(model, snapshot, at, &tensor, error);

        if (status != ZT_OK)
            return status;
        tensor.offset = data_from(snapshot, end);
        if (zt_load_le64(model->storage->manifest + at + 16) != tensor.offset - data ||
            tensor.offset > model->file_size || tensor.length > model->file_size - tensor.offset)
            return zt_fail(
                error, ZT_INVALID, "mag §Tensors DataBounds", at + 16,
                "%sa tensor's data do not follow the previous ones, or is not within the file",
                zt_load_le64(model->storage->manifest + at + 16) == tensor.offset - data ? CUT_OFF
                                                                                         : "");
        status = zt_tensor_add(builder, &tensor, error);
        if (status != ZT_OK)
            return status;
        end = tensor.offset + tensor.length;
        assert(end <= model->file_size);
        at += RECORD_MIN + 8 * (uint64_t)tensor.rank;
    }
    if (end > model->file_size)
        return zt_fail(error, ZT_INVALID, "mag §Snapshot Section", snapshot->data_tag_at,
                       "the file ends before the data begins");
    if (end != model->file_size)
        return zt_fail(error, ZT_INVALID, "mag §Snapshot DataEnd", end,
                       "bytes follow the last tensor's data");
    return ZT_OK;
}

/* --- the whole --- */

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    struct snapshot *snapshot = state;
    struct zt_cursor cursor;
    enum zt_status status = zt_cursor_open(&cursor, source, error);

    if (status != ZT_OK)
        return status;
    status = survey(&cursor, snapshot, error);
    zt_cursor_close(&cursor);
    if (status == ZT_OK && snapshot->data_tag_at > MAG_RECORDS_MAX)
        status = zt_fail(error, ZT_INVALID, "mag §Header TooLarge", snapshot->data_tag_at,
                         "records of %" PRIu64 " bytes, more than 1 GiB", snapshot->data_tag_at);
    if (status == ZT_OK)
        *out_place =
            (struct zt_manifest_place){.offset = 0, .length = snapshot->data_tag_at + TAG_BYTES};
    return status;
}

static enum zt_status read_snapshot(void *state, struct zt_builder *builder, struct zt_error *error)
{
    const struct snapshot *snapshot = state;
    const struct zt_model *model = builder->model;
    uint32_t sum = zt_crc32c(0, model->storage->manifest + COVERED_FROM,
                             (size_t)snapshot->data_tag_at - COVERED_FROM);
    enum zt_status status;

    assert(snapshot->data_tag_at + TAG_BYTES == model->manifest_length);
    builder->model->version = zt_text_from(snapshot->version == MAG_VERSION_200 ? "200" : "100");
    if (sum != snapshot->checksum)
        return zt_fail(error, ZT_INVALID, "mag §Header Checksum", CHECKSUM_AT,
                       "the checksum is %08" PRIx32 ", the records give %08" PRIx32,
                       snapshot->checksum, sum);
    status = check_strings(model, snapshot, error);
    return status == ZT_OK ? add_tensors(builder, snapshot, error) : status;
}

/* There is no rule on overlap: each tensor's data begin where the previous ones end. */
static const struct zt_reader reader = {
    .format = ZT_FORMAT_MAG,
    .name = "mag",
    .duplicate_rule = "mag §Names DuplicateName",
    .locate = locate,
    .read = read_snapshot,
};

enum zt_status mag_snapshot_open(uint32_t version, struct zt_source *source,
                                 struct zt_model **out_model, struct zt_error *error)
{
    struct snapshot snapshot = {.version = version};

    assert(version == MAG_VERSION_100 || version == MAG_VERSION_200);
    return zt_reader_open(&reader, &snapshot, source, out_model, error);
}
