/* GGUF 2 and 3: the container.
 *
 * The header says how many keys and tensors it has, not how long it is: it is walked once to its
 * end, through a window of the file, and then read as a whole. So nothing is ever reserved for what
 * a count or a length claims. Version 3 differs from 2 only in that big-endian files exist, which
 * are not read. */
#include <inttypes.h>
#include <string.h>

#include "formats/formats.h"
#include "formats/gguf_read.h"
#include "formats/gguf_values.h"
#include "model/extents.h"

#define VERSION_AT      4
#define TENSOR_COUNT_AT 8
#define PAIR_COUNT_AT   16
/* Of a pair: length and one byte of its key, its type, and one byte of value. Of a tensor's entry:
 * length and one byte of its name, no dimensions, type and offset. */
#define PAIR_MIN_BYTES   14
#define TENSOR_MIN_BYTES 25

/* --- the head --- */

static enum zt_status check_version(uint32_t version, struct zt_error *error)
{
    uint32_t swapped = __builtin_bswap32(version);

    if (version == 2 || version == 3)
        return ZT_OK;
    if (version == 1) {
        return zt_fail(error, ZT_UNSUPPORTED, "gguf §Header Version", VERSION_AT,
                       "GGUF version 1 is not read: convert the file to version 2 or 3");
    }
    if (swapped >= 1 && swapped <= 3) {
        return zt_fail(error, ZT_UNSUPPORTED, "gguf §Header Version", VERSION_AT,
                       "big-endian GGUF (version %" PRIu32 ") is not read", swapped);
    }
    return zt_fail(error, ZT_INVALID, "gguf §Header Version", VERSION_AT,
                   "GGUF version %" PRIu32 " is not known", version);
}

static enum zt_status check_counts(const struct gguf_reading *reading, uint64_t left,
                                   struct zt_error *error)
{
    if (reading->tensor_count > left / TENSOR_MIN_BYTES) {
        return zt_fail(error, ZT_INVALID, "gguf §Header Counts", TENSOR_COUNT_AT,
                       "%" PRIu64 " tensors where %" PRIu64 " bytes remain", reading->tensor_count,
                       left);
    }
    if (reading->pair_count > left / PAIR_MIN_BYTES) {
        return zt_fail(error, ZT_INVALID, "gguf §Header Counts", PAIR_COUNT_AT,
                       "%" PRIu64 " keys where %" PRIu64 " bytes remain", reading->pair_count,
                       left);
    }
    return ZT_OK;
}

static enum zt_status read_head(struct gguf_cursor *cursor, struct gguf_reading *reading,
                                struct zt_text *out_version, struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status;
    uint32_t version;

    if (cursor->end < GGUF_HEAD_BYTES) {
        return zt_fail(error, ZT_INVALID, "gguf §Header FileTooSmall", 0,
                       "a file of %" PRIu64 " bytes", cursor->end);
    }
    status = gguf_take(cursor, GGUF_HEAD_BYTES, &bytes, error);
    if (status != ZT_OK)
        return status;
    version = (uint32_t)gguf_load(bytes + VERSION_AT, 4);
    status = check_version(version, error);
    if (status != ZT_OK)
        return status;
    reading->tensor_count = gguf_load(bytes + TENSOR_COUNT_AT, 8);
    reading->pair_count = gguf_load(bytes + PAIR_COUNT_AT, 8);
    *out_version = (struct zt_text){version == 2 ? "2" : "3", 1};
    return check_counts(reading, gguf_cursor_left(cursor), error);
}

/* --- finding the header's end --- */

static enum zt_status pass_string(struct gguf_cursor *cursor, struct zt_error *error)
{
    uint64_t length;
    enum zt_status status = gguf_take_length(cursor, &length, error);

    if (status == ZT_OK)
        gguf_pass(cursor, length);
    return status;
}

static enum zt_status pass_pair(struct gguf_cursor *cursor, struct zt_error *error)
{
    enum gguf_value type;
    enum zt_status status = pass_string(cursor, error);

    if (status == ZT_OK)
        status = gguf_take_value_type(cursor, &type, error);
    return status == ZT_OK ? gguf_value_skip(cursor, type, error) : status;
}

static enum zt_status pass_tensor(struct gguf_cursor *cursor, struct zt_error *error)
{
    const uint8_t *bytes;
    uint32_t rank;
    enum zt_status status = pass_string(cursor, error);

    if (status == ZT_OK)
        status = gguf_take_rank(cursor, &rank, error);
    if (status == ZT_OK) {
        /* The dimensions, the type and the offset. */
        status = gguf_take(cursor, rank * sizeof(uint64_t) + sizeof(uint32_t) + sizeof(uint64_t),
                           &bytes, error);
    }
    return status;
}

/* Walks from the head to the end of the last tensor's entry. */
static enum zt_status pass_header(struct gguf_cursor *cursor, const struct gguf_reading *reading,
                                  struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    cursor->bounds_rule = GGUF_METADATA_BOUNDS;
    for (uint64_t i = 0; i < reading->pair_count && status == ZT_OK; i++)
        status = pass_pair(cursor, error);
    cursor->bounds_rule = GGUF_TENSOR_BOUNDS;
    for (uint64_t i = 0; i < reading->tensor_count && status == ZT_OK; i++)
        status = pass_tensor(cursor, error);
    return status;
}

static enum zt_status measure(struct zt_source *source, struct gguf_reading *reading,
                              struct zt_text *out_version, uint64_t *out_length,
                              struct zt_error *error)
{
    struct gguf_cursor cursor;
    enum zt_status status = gguf_cursor_over_file(&cursor, source, error);

    if (status != ZT_OK)
        return status;
    status = read_head(&cursor, reading, out_version, error);
    if (status == ZT_OK)
        status = pass_header(&cursor, reading, error);
    if (status == ZT_OK && cursor.position > GGUF_HEADER_MAX_BYTES) {
        status = zt_fail(error, ZT_INVALID, "gguf §Header HeaderTooLarge", 0,
                         "the header is larger than 1 GiB");
    }
    *out_length = cursor.position;
    gguf_cursor_close(&cursor);
    return status;
}

/* --- the whole --- */

static enum zt_status read_header(struct gguf_reading *reading, struct zt_error *error)
{
    const struct zt_model *model = reading->builder.model;
    enum zt_status status;
    uint64_t alignment;

    gguf_cursor_over_memory(&reading->cursor, model->storage->manifest,
                            (size_t)model->manifest_length);
    gguf_pass(&reading->cursor, GGUF_HEAD_BYTES);
    status = gguf_metadata_read(reading, error);
    if (status != ZT_OK)
        return status;
    alignment = reading->alignment;
    reading->data_offset = (model->manifest_length + alignment - 1) / alignment * alignment;
    return gguf_tensors_read(reading, error);
}

enum zt_status gguf_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error)
{
    struct gguf_reading reading = {0};
    struct zt_model *model = NULL;
    struct zt_text version;
    uint64_t length;
    enum zt_status status = measure(source, &reading, &version, &length, error);

    if (status != ZT_OK)
        return status;
    status = zt_builder_init(&reading.builder, source, 0, length, error);
    if (status != ZT_OK)
        return status;
    reading.builder.model->format = ZT_FORMAT_GGUF;
    reading.builder.model->format_name = "gguf";
    reading.builder.model->version = version;
    status = read_header(&reading, error);
    if (status == ZT_OK)
        status = zt_builder_finish(&reading.builder, "gguf §Tensor DuplicateName", &model, error);
    if (status != ZT_OK) {
        zt_builder_abandon(&reading.builder);
        return status;
    }
    status = zt_extents_check(model, false, "gguf §Data BlobOverlap", error);
    if (status != ZT_OK) {
        zt_model_free(model);
        return status;
    }
    *out_model = model;
    return ZT_OK;
}
