/* Content rules of compressed sparse rows and coordinate lists (zTensor 1.x section 3, zTensor 2
 * section 6). */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "check/content.h"

/* Checking that coordinates differ takes a word for each: at most 512 MiB. */
#define UNIQUE_MAX ((uint64_t)64 << 20)
/* Up to this count an insertion sort is faster than another pass. */
#define SMALL_COUNT 24

/* Only zTensor 2 requires that indices increase and coordinates differ. */
static bool is_strict(const struct zt_content *content)
{
    return content->model->format == ZT_FORMAT_ZT2;
}

static enum zt_status require_index(struct zt_content_reader *reader, uint64_t *out_index)
{
    bool got = false;
    enum zt_status status = zt_content_reader_index(reader, out_index, &got);

    if (status == ZT_OK && !got)
        return zt_content_fail(reader->content, reader->component,
                               "there are fewer indices than the object needs");
    return status;
}

/* Checks that the component ends here, which also decodes an encoded one to its end. */
static enum zt_status require_end(struct zt_content_reader *reader)
{
    uint64_t surplus = 0;
    enum zt_status status = zt_content_reader_drain(reader, &surplus);

    if (status == ZT_OK && surplus > 0)
        return zt_content_fail(reader->content, reader->component,
                               "there are more indices than the object needs");
    return status;
}

/* Checks the number of values if the manifest does not state it (zstd before 1.2). */
static enum zt_status check_values(const struct zt_content *content, uint64_t count)
{
    const struct zt_component *values = zt_content_find(content, "values");
    struct zt_content_reader reader;
    uint64_t bytes = 0, wanted = 0;
    enum zt_status status;

    if (values == NULL || values->decoded_length != ZT_LENGTH_UNKNOWN ||
        values->encoding == ZT_ENCODING_UNKNOWN ||
        zt_element_bytes((enum zt_dtype)values->dtype, (enum zt_logical)values->logical, count,
                         &wanted) != ZT_OK)
        return ZT_OK;
    status = zt_content_reader_open(&reader, content, values);
    if (status != ZT_OK)
        return status;
    status = zt_content_reader_drain(&reader, &bytes);
    zt_content_reader_close(&reader);
    if (status == ZT_OK && bytes != wanted)
        return zt_content_fail(content, values, "the numbers of values and indices differ");
    return status;
}

/* --- compressed sparse rows --- */

static enum zt_status check_row(const struct zt_content *content, struct zt_content_reader *indices,
                                uint64_t count)
{
    uint64_t previous = 0;

    assert(content->object->rank == 2);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t index = 0;
        enum zt_status status = require_index(indices, &index);

        if (status != ZT_OK)
            return status;
        if (index >= content->shape[1])
            return zt_content_fail(content, indices->component,
                                   "a column index is outside the shape");
        if (is_strict(content) && i > 0 && index <= previous)
            return zt_content_fail(content, indices->component,
                                   "the column indices of a row do not increase");
        previous = index;
    }
    return ZT_OK;
}

static enum zt_status check_rows(const struct zt_content *content, struct zt_content_reader *indptr,
                                 struct zt_content_reader *indices)
{
    uint64_t begin = 0, end = 0;
    enum zt_status status = require_index(indptr, &begin);

    if (status == ZT_OK && begin != 0)
        return zt_content_fail(content, indptr->component, "the first row pointer is not 0");
    for (uint64_t row = 0; status == ZT_OK && row < content->shape[0]; row++) {
        status = require_index(indptr, &end);
        if (status == ZT_OK && end < begin)
            return zt_content_fail(content, indptr->component, "row pointers decrease");
        assert(status != ZT_OK || begin <= end);
        if (status == ZT_OK)
            status = check_row(content, indices, end - begin);
        begin = end;
    }
    if (status == ZT_OK)
        status = require_end(indptr);
    if (status == ZT_OK)
        status = require_end(indices);
    return status == ZT_OK ? check_values(content, begin) : status;
}

enum zt_status zt_content_csr(const struct zt_content *content)
{
    const struct zt_component *indptr_part = zt_content_find(content, "indptr");
    const struct zt_component *indices_part = zt_content_find(content, "indices");
    struct zt_content_reader indptr, indices;
    enum zt_status status;

    /* Opening the model has ensured that these exist. */
    if (indptr_part == NULL || indices_part == NULL || content->object->rank != 2)
        return ZT_OK;
    status = zt_content_reader_open(&indptr, content, indptr_part);
    if (status != ZT_OK)
        return status;
    status = zt_content_reader_open(&indices, content, indices_part);
    if (status == ZT_OK) {
        status = check_rows(content, &indptr, &indices);
        zt_content_reader_close(&indices);
    }
    zt_content_reader_close(&indptr);
    return status;
}

/* --- telling keys apart --- */

static bool is_ascending(const uint64_t *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (keys[i - 1] >= keys[i])
            return false;
    return true;
}

static void insert_sort(uint64_t *keys, size_t count)
{
    assert(count <= SMALL_COUNT);
    for (size_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        size_t at = i;

        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Moves keys without the bit before keys with it; returns the number of keys without it. */
static size_t partition(uint64_t *keys, size_t count, uint64_t bit)
{
    size_t low = 0, high = count;

    while (low < high) {
        if (keys[low] & bit) {
            uint64_t key = keys[low];

            keys[low] = keys[--high];
            keys[high] = key;
        } else {
            low++;
        }
    }
    assert(low == high && low <= count);
    return low;
}

/* Sorts in place, recursing at most 64 levels deep. */
static void sort_by_bits(uint64_t *keys, size_t count, uint64_t bit)
{
    while (bit != 0 && count > SMALL_COUNT) {
        size_t low = partition(keys, count, bit);

        assert(low <= count);
        bit >>= 1;
        sort_by_bits(keys, low, bit);
        keys += low;
        count -= low;
    }
    if (bit != 0)
        insert_sort(keys, count);
}

bool zt_keys_unique(uint64_t *keys, size_t count)
{
    if (is_ascending(keys, count))
        return true;
    sort_by_bits(keys, count, (uint64_t)1 << 63);
    return is_ascending(keys, count);
}

/* --- coordinate lists --- */

/* The row-major position of each coordinate, computed dimension by dimension. */
struct keys {
    uint64_t *at;
    size_t capacity;
};

/* Makes room as coordinates are read, never for a declared number. */
static enum zt_status reserve_key(struct keys *keys, uint64_t index, struct zt_error *error)
{
    if (index < keys->capacity || zt_array_reserve(&keys->at, &keys->capacity, (size_t)index + 1,
                                                   sizeof(*keys->at), UNIQUE_MAX) == ZT_OK)
        return ZT_OK;
    return zt_fail_memory(error, "comparing coordinates");
}

/* Reads the coordinates of one dimension; keys is NULL if they need not differ. */
static enum zt_status check_dimension(struct zt_content_reader *coords, unsigned dimension,
                                      uint64_t count, struct keys *keys)
{
    const struct zt_content *content = coords->content;
    uint64_t extent = content->shape[dimension];

    for (uint64_t i = 0; i < count; i++) {
        uint64_t index = 0;
        enum zt_status status = require_index(coords, &index);

        if (status == ZT_OK && index >= extent)
            return zt_content_fail(content, coords->component, "a coordinate is outside the shape");
        if (status == ZT_OK && keys != NULL && dimension == 0)
            status = reserve_key(keys, i, content->error);
        if (status != ZT_OK)
            return status;
        if (keys == NULL)
            continue;
        assert(i < keys->capacity);
        keys->at[i] = (dimension == 0 ? 0 : keys->at[i] * extent) + index;
    }
    return ZT_OK;
}

static enum zt_status check_points(const struct zt_content *content,
                                   struct zt_content_reader *coords, uint64_t count)
{
    struct keys keys = {NULL, 0};
    bool fits = count <= UNIQUE_MAX;
    bool unique = is_strict(content);
    enum zt_status status = ZT_OK;

    for (unsigned d = 0; status == ZT_OK && d < content->object->rank; d++)
        status = check_dimension(coords, d, count, unique && fits ? &keys : NULL);
    assert(status != ZT_OK || !unique || !fits || keys.capacity >= count);
    if (status == ZT_OK)
        status = require_end(coords);
    if (status == ZT_OK && unique && !fits) {
        status = zt_fail(content->error, ZT_UNSUPPORTED, NULL, coords->component->offset,
                         "too many coordinates to check that they differ");
        zt_error_at(content->error, zt_object_name(content->object),
                    zt_component_name(coords->component));
    }
    if (status == ZT_OK && unique && !zt_keys_unique(keys.at, (size_t)count))
        status = zt_content_fail(content, coords->component, "a coordinate occurs twice");
    free(keys.at);
    return status == ZT_OK ? check_values(content, count) : status;
}

/* Finds the number of coordinates; decodes the component once if the manifest does not state its
 * length. */
static enum zt_status count_points(const struct zt_content *content,
                                   const struct zt_component *part, uint64_t *out_count)
{
    uint64_t point_bytes =
        (uint64_t)zt_dtype_width((enum zt_dtype)part->dtype) * content->object->rank;
    uint64_t bytes = part->decoded_length;
    struct zt_content_reader coords;
    enum zt_status status = ZT_OK;

    assert(point_bytes > 0);
    if (bytes == ZT_LENGTH_UNKNOWN) {
        status = zt_content_reader_open(&coords, content, part);
        if (status != ZT_OK)
            return status;
        status = zt_content_reader_drain(&coords, &bytes);
        zt_content_reader_close(&coords);
    }
    if (status == ZT_OK && bytes % point_bytes != 0)
        return zt_content_fail(content, part,
                               "the dimensions have different numbers of coordinates");
    *out_count = bytes / point_bytes;
    return status;
}

enum zt_status zt_content_coo(const struct zt_content *content)
{
    const struct zt_component *part = zt_content_find(content, "coords");
    struct zt_content_reader coords;
    uint64_t count = 0;
    enum zt_status status;

    /* Opening the model has ensured that these exist. */
    if (part == NULL || content->object->rank == 0)
        return ZT_OK;
    status = zt_content_reader_open(&coords, content, part);
    if (status != ZT_OK)
        return status;
    status = count_points(content, part, &count);
    if (status == ZT_OK)
        status = check_points(content, &coords, count);
    zt_content_reader_close(&coords);
    return status;
}
