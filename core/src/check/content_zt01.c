/* Content rules of zTensor 0.1's sparse blobs, which hold indices and values in one component.
 *
 * A coordinate list is a run of records, each of 64-bit indices and a value. Compressed rows
 * consist of 64-bit row pointers, 64-bit column indices, and values. Bytes after the last value are
 * ignored. */
#include <assert.h>

#include "base/little_endian.h"
#include "check/content.h"
#include "zt/model.h"

#define INDEX_BYTES 8

static const struct zt_component *blob(const struct zt_content *content)
{
    return zt_content_find(content, "data");
}

static enum zt_status check_value(const struct zt_content_reader *reader, const uint8_t *value)
{
    if (reader->component->dtype == ZT_BOOL && *value > 1)
        return zt_content_fail(reader->content, reader->component, "a bool is 0x%02x", *value);
    return ZT_OK;
}

/* --- coordinate list --- */

static enum zt_status check_record(const struct zt_content_reader *reader, const uint8_t *record)
{
    const struct zt_content *content = reader->content;

    for (unsigned d = 0; d < content->object->rank; d++)
        if (zt_load_le64(record + d * INDEX_BYTES) >= content->shape[d])
            return zt_content_fail(content, reader->component, "a coordinate is outside the shape");
    return check_value(reader, record + content->object->rank * INDEX_BYTES);
}

enum zt_status zt_content_zt01_coo(const struct zt_content *content)
{
    struct zt_content_reader reader;
    uint8_t record[ZT_CONTENT_RECORD_MAX];
    bool got = true;
    enum zt_status status;

    if (blob(content) == NULL)
        return ZT_OK;
    status = zt_content_reader_open(&reader, content, blob(content));
    if (status != ZT_OK)
        return status;
    while (status == ZT_OK && got) {
        size_t length = (size_t)content->object->rank * INDEX_BYTES + reader.width;

        assert(length <= sizeof(record));
        status = zt_content_reader_bytes(&reader, record, length, &got);
        if (status == ZT_OK && got)
            status = check_record(&reader, record);
    }
    zt_content_reader_close(&reader);
    return status;
}

/* --- compressed sparse rows --- */

static enum zt_status require_bytes(struct zt_content_reader *reader, uint8_t *bytes, size_t length)
{
    bool got = false;
    enum zt_status status = zt_content_reader_bytes(reader, bytes, length, &got);

    if (status == ZT_OK && !got)
        return zt_content_fail(reader->content, reader->component,
                               "the blob ends before its last value");
    return status;
}

static enum zt_status check_row_pointers(struct zt_content_reader *reader, uint64_t *out_count)
{
    uint8_t bytes[INDEX_BYTES];
    uint64_t previous = 0;
    enum zt_status status = require_bytes(reader, bytes, INDEX_BYTES);

    assert(reader->content->object->rank == 2);
    if (status == ZT_OK && zt_load_le64(bytes) != 0)
        return zt_content_fail(reader->content, reader->component,
                               "the first row pointer is not 0");
    for (uint64_t row = 0; status == ZT_OK && row < reader->content->shape[0]; row++) {
        status = require_bytes(reader, bytes, INDEX_BYTES);
        if (status == ZT_OK && zt_load_le64(bytes) < previous)
            return zt_content_fail(reader->content, reader->component, "row pointers decrease");
        if (status == ZT_OK)
            previous = zt_load_le64(bytes);
    }
    *out_count = previous;
    return status;
}

static enum zt_status check_columns(struct zt_content_reader *reader, uint64_t count)
{
    uint8_t bytes[INDEX_BYTES];

    assert(reader->content->object->rank == 2);
    for (uint64_t i = 0; i < count; i++) {
        enum zt_status status = require_bytes(reader, bytes, INDEX_BYTES);

        if (status != ZT_OK)
            return status;
        if (zt_load_le64(bytes) >= reader->content->shape[1])
            return zt_content_fail(reader->content, reader->component,
                                   "a column index is outside the shape");
    }
    return ZT_OK;
}

static enum zt_status check_values(struct zt_content_reader *reader, uint64_t count)
{
    uint8_t value[INDEX_BYTES];
    enum zt_status status = ZT_OK;

    assert(reader->width <= sizeof(value));
    for (uint64_t i = 0; status == ZT_OK && i < count; i++) {
        status = require_bytes(reader, value, reader->width);
        if (status == ZT_OK)
            status = check_value(reader, value);
    }
    return status;
}

enum zt_status zt_content_zt01_csr(const struct zt_content *content)
{
    struct zt_content_reader reader;
    uint64_t count = 0;
    enum zt_status status;

    if (blob(content) == NULL)
        return ZT_OK;
    if (content->object->rank != 2)
        return zt_content_fail(content, blob(content),
                               "a compressed sparse row object has two dimensions");
    status = zt_content_reader_open(&reader, content, blob(content));
    if (status != ZT_OK)
        return status;
    status = check_row_pointers(&reader, &count);
    if (status == ZT_OK)
        status = check_columns(&reader, count);
    if (status == ZT_OK)
        status = check_values(&reader, count);
    if (status == ZT_OK)
        status = zt_content_reader_drain(&reader, NULL);
    zt_content_reader_close(&reader);
    return status;
}
