/* GGUF 2 and 3: the container.
 *
 * The header states its numbers of keys and tensors, but not its length. It is walked to its end
 * through a window of the file and then read as a whole, so that no memory is reserved for a
 * declared count or length. Version 3 differs from version 2 only in allowing big-endian files,
 * which are not read. */
#include "formats/gguf/gguf.h"

#include <assert.h>
#include <inttypes.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "formats/formats.h"

/* Magic, version and two counts. */
#define HEAD_BYTES      24
#define VERSION_AT      4
#define TENSOR_COUNT_AT 8
#define PAIR_COUNT_AT   16
/* The shortest pair: length and one byte of its key, its type, and one byte of value. The shortest
 * entry of a tensor: length and one byte of its name, no dimensions, type and offset. */
#define PAIR_MIN_BYTES   14
#define TENSOR_MIN_BYTES 25

/* --- the head --- */

static enum zt_status check_version(uint32_t version, struct zt_error *error)
{
    uint32_t swapped = __builtin_bswap32(version);

    if (version == 2 || version == 3)
        return ZT_OK;
    if (version == 1)
        return zt_fail(error, ZT_UNSUPPORTED, "gguf §Header Version", VERSION_AT,
                       "GGUF version 1 is not supported: convert the file to version 2 or 3");
    if (swapped >= 1 && swapped <= 3)
        return zt_fail(error, ZT_UNSUPPORTED, "gguf §Header Version", VERSION_AT,
                       "big-endian GGUF (version %" PRIu32 ") is not supported", swapped);
    return zt_fail(error, ZT_INVALID, "gguf §Header Version", VERSION_AT,
                   "GGUF version %" PRIu32 " is not known", version);
}

static enum zt_status check_counts(const struct gguf_reading *reading, uint64_t left,
                                   struct zt_error *error)
{
    if (reading->tensor_count > left / TENSOR_MIN_BYTES)
        return zt_fail(error, ZT_INVALID, "gguf §Header Counts", TENSOR_COUNT_AT,
                       CUT_OFF "%" PRIu64 " tensors where %" PRIu64 " bytes remain",
                       reading->tensor_count, left);
    if (reading->pair_count > left / PAIR_MIN_BYTES)
        return zt_fail(error, ZT_INVALID, "gguf §Header Counts", PAIR_COUNT_AT,
                       CUT_OFF "%" PRIu64 " keys where %" PRIu64 " bytes remain",
                       reading->pair_count, left);
    return ZT_OK;
}

static enum zt_status read_head(struct zt_cursor *cursor, struct gguf_reading *reading,
                                struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status;
    uint32_t version;

    if (cursor->end < HEAD_BYTES)
        return zt_fail(error, ZT_INVALID, "gguf §Header FileTooSmall", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", cursor->end);
    status = zt_cursor_take(cursor, HEAD_BYTES, &bytes, error);
    if (status != ZT_OK)
        return status;
    version = zt_load_le32(bytes + VERSION_AT);
    status = check_version(version, error);
    if (status != ZT_OK)
        return status;
    reading->version = zt_text_from(version == 2 ? "2" : "3");
    reading->tensor_count = zt_load_le64(bytes + TENSOR_COUNT_AT);
    reading->pair_count = zt_load_le64(bytes + PAIR_COUNT_AT);
    return check_counts(reading, zt_cursor_left(cursor), error);
}

/* --- the header's end --- */

enum zt_status gguf_check_size(const struct zt_cursor *cursor, struct zt_error *error)
{
    if (cursor->position > GGUF_HEADER_MAX_BYTES)
        return zt_fail(error, ZT_INVALID, "gguf §Header HeaderTooLarge", 0,
                       "the header is larger than 1 GiB");
    return ZT_OK;
}

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    struct gguf_reading *reading = state;
    struct zt_cursor cursor;
    enum zt_status status = zt_cursor_open(&cursor, source, error);

    if (status != ZT_OK)
        return status;
    status = read_head(&cursor, reading, error);
    if (status == ZT_OK)
        status = gguf_metadata_skip(&cursor, reading->pair_count, error);
    if (status == ZT_OK)
        status = gguf_tensors_skip(&cursor, reading->tensor_count, error);
    if (status == ZT_OK)
        status = gguf_check_size(&cursor, error);
    if (status == ZT_OK)
        *out_place = (struct zt_manifest_place){.offset = 0, .length = cursor.position};
    assert(cursor.position <= cursor.end);
    zt_cursor_close(&cursor);
    return status;
}

/* --- the whole --- */

static enum zt_status read_header(void *state, struct zt_builder *builder, struct zt_error *error)
{
    struct gguf_reading *reading = state;
    struct zt_model *model = builder->model;
    enum zt_status status;

    assert(model->manifest_length >= HEAD_BYTES);
    model->version = reading->version;
    reading->builder = builder;
    zt_cursor_over(&reading->cursor, model->storage->manifest, model->manifest_length);
    reading->cursor.position = HEAD_BYTES;
    status = gguf_metadata_read(reading, error);
    if (status != ZT_OK)
        return status;
    assert(reading->alignment > 0);
    reading->data_offset =
        (model->manifest_length + reading->alignment - 1) / reading->alignment * reading->alignment;
    return gguf_tensors_read(reading, error);
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_GGUF,
    .name = "gguf",
    .duplicate_rule = "gguf §Tensor DuplicateName",
    .overlap_rule = "gguf §Data BlobOverlap",
    .keeps_only_names = true,
    .locate = locate,
    .read = read_header,
};

enum zt_status gguf_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error)
{
    struct gguf_reading reading = {0};

    return zt_reader_open(&reader, &reading, source, out_model, error);
}
