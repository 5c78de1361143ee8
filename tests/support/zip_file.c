/* NPY arrays and ZIP archives for tests. */
#include "zip_file.h"

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define RECORD_BYTES 46
#define END64_BYTES  56

void bytes_put_le(uint8_t *at, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void append_le(struct bytes *bytes, uint64_t value, unsigned width)
{
    uint8_t word[8];

    bytes_put_le(word, value, width);
    bytes_append(bytes, word, width);
}

size_t npy_append(struct bytes *bytes, const char *dict, const void *data, size_t length)
{
    size_t text = strlen(dict) + 1;

    bytes_append(bytes, "\x93NUMPY\1", 8);
    append_le(bytes, text, 2);
    bytes_append(bytes, dict, text - 1);
    bytes_append(bytes, "\n", 1);
    bytes_append(bytes, data, length);
    return 10 + text;
}

/* --- archives --- */

static void append_deflated(struct bytes *bytes, const struct bytes *content)
{
    z_stream zlib = {0};
    uLong bound;
    uint8_t *out;

    assert_int_equal(deflateInit2(&zlib, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    bound = deflateBound(&zlib, content->length);
    out = malloc(bound);
    assert_non_null(out);
    zlib.next_in = content->at;
    zlib.avail_in = (uInt)content->length;
    zlib.next_out = out;
    zlib.avail_out = (uInt)bound;
    assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    bytes_append(bytes, out, zlib.total_out);
    deflateEnd(&zlib);
    free(out);
}

/* The fields that local header and directory share, from "version needed" to the name's length. */
static void append_shared_fields(struct bytes *bytes, const char *name, enum zip_file_kind kind,
                                 const uint64_t sizes[3])
{
    append_le(bytes, kind == ZIP_FILE_ZIP64 ? 45 : 20, 2);
    append_le(bytes, kind == ZIP_FILE_DESCRIPTOR ? 8 : 0, 2);
    append_le(bytes, kind == ZIP_FILE_DEFLATED ? 8 : 0, 2);
    append_le(bytes, 0x00210000, 4);
    append_le(bytes, sizes[0], 4);
    append_le(bytes, sizes[1], 4);
    append_le(bytes, sizes[2], 4);
    append_le(bytes, strlen(name), 2);
}

static void append_local(struct bytes *bytes, const char *name, enum zip_file_kind kind,
                         const uint64_t sizes[3])
{
    static const uint64_t unknown[3] = {0, 0, 0};
    const uint64_t saturated[3] = {sizes[0], UINT32_MAX, UINT32_MAX};

    append_le(bytes, 0x04034B50, 4);
    if (kind == ZIP_FILE_ZIP64)
        append_shared_fields(bytes, name, kind, saturated);
    else
        append_shared_fields(bytes, name, kind, kind == ZIP_FILE_DESCRIPTOR ? unknown : sizes);
    append_le(bytes, kind == ZIP_FILE_ZIP64 ? 20 : 0, 2);
    bytes_append(bytes, name, strlen(name));
    if (kind != ZIP_FILE_ZIP64)
        return;
    append_le(bytes, 1, 2);
    append_le(bytes, 16, 2);
    append_le(bytes, sizes[2], 8);
    append_le(bytes, sizes[1], 8);
}

void zip_file_add(struct zip_file *zip, const char *name, enum zip_file_kind kind,
                  const struct bytes *content)
{
    struct bytes stored = {NULL, 0};
    unsigned number = zip->count++;
    uint64_t sizes[3];

    assert_true(number < ZIP_FILE_ENTRIES);
    if (kind == ZIP_FILE_DEFLATED)
        append_deflated(&stored, content);
    else
        bytes_append(&stored, content->at, content->length);
    sizes[0] = crc32(0, content->at, (uInt)content->length);
    sizes[1] = stored.length;
    sizes[2] = content->length;
    zip->local_at[number] = zip->bytes.length;
    append_local(&zip->bytes, name, kind, sizes);
    zip->data_at[number] = zip->bytes.length;
    zip->data_length[number] = stored.length;
    bytes_append(&zip->bytes, stored.at, stored.length);
    if (kind == ZIP_FILE_DESCRIPTOR) {
        append_le(&zip->bytes, 0x08074B50, 4);
        append_le(&zip->bytes, sizes[0], 4);
        append_le(&zip->bytes, sizes[1], 4);
        append_le(&zip->bytes, sizes[2], 4);
    }
    bytes_free(&stored);
    zip->record_at[number] = zip->records.length;
    append_le(&zip->records, 0x02014B50, 4);
    append_le(&zip->records, 20, 2);
    append_shared_fields(&zip->records, name, kind, sizes);
    append_le(&zip->records, 0, 8);
    append_le(&zip->records, 0, 4);
    append_le(&zip->records, zip->local_at[number], 4);
    bytes_append(&zip->records, name, strlen(name));
}

void zip_file_add_u8(struct zip_file *zip, const char *name, enum zip_file_kind kind,
                     unsigned length)
{
    struct bytes array = {NULL, 0};
    uint8_t data[256];
    char dict[96];

    assert_true(length <= sizeof(data));
    for (unsigned i = 0; i < length; i++)
        data[i] = (uint8_t)i;
    snprintf(dict, sizeof(dict), "{'descr': '|u1', 'fortran_order': False, 'shape': (%u,), }",
             length);
    npy_append(&array, dict, data, length);
    zip_file_add(zip, name, kind, &array);
    bytes_free(&array);
}

static void append_end64(struct zip_file *zip)
{
    zip->end64_at = zip->bytes.length;
    append_le(&zip->bytes, 0x06064B50, 4);
    append_le(&zip->bytes, END64_BYTES - 12, 8);
    append_le(&zip->bytes, 45, 2);
    append_le(&zip->bytes, 45, 2);
    append_le(&zip->bytes, 0, 8);
    append_le(&zip->bytes, zip->count, 8);
    append_le(&zip->bytes, zip->count, 8);
    append_le(&zip->bytes, zip->records.length, 8);
    append_le(&zip->bytes, zip->directory_at, 8);
    append_le(&zip->bytes, 0x07064B50, 4);
    append_le(&zip->bytes, 0, 4);
    append_le(&zip->bytes, zip->end64_at, 8);
    append_le(&zip->bytes, 1, 4);
}

void zip_file_end(struct zip_file *zip, const char *comment, bool is_wide)
{
    zip->directory_at = zip->bytes.length;
    for (unsigned i = 0; i < zip->count; i++)
        zip->record_at[i] += zip->directory_at;
    bytes_append(&zip->bytes, zip->records.at, zip->records.length);
    if (is_wide)
        append_end64(zip);
    zip->end_at = zip->bytes.length;
    append_le(&zip->bytes, 0x06054B50, 4);
    append_le(&zip->bytes, 0, 4);
    append_le(&zip->bytes, is_wide ? UINT16_MAX : zip->count, 2);
    append_le(&zip->bytes, is_wide ? UINT16_MAX : zip->count, 2);
    append_le(&zip->bytes, is_wide ? UINT32_MAX : zip->records.length, 4);
    append_le(&zip->bytes, is_wide ? UINT32_MAX : zip->directory_at, 4);
    append_le(&zip->bytes, strlen(comment), 2);
    bytes_append(&zip->bytes, comment, strlen(comment));
}

void zip_file_free(struct zip_file *zip)
{
    bytes_free(&zip->bytes);
    bytes_free(&zip->records);
    memset(zip, 0, sizeof(*zip));
}

/* --- opening --- */

enum zt_status bytes_open(const struct bytes *bytes, size_t length, struct zt_model **out_model,
                          struct zt_error *error)
{
    struct zt_source *source;
    uint8_t *copy = malloc(length > 0 ? length : 1);
    enum zt_status status;

    assert_non_null(copy);
    memcpy(copy, bytes->at, length);
    assert_int_equal(zt_source_from_memory(copy, length, &source, error), ZT_OK);
    status = zt_model_open(source, out_model, error);
    zt_source_close(source);
    free(copy);
    return status;
}

struct zt_model *bytes_model(const struct bytes *bytes)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    if (bytes_open(bytes, bytes->length, &model, &error) != ZT_OK)
        fail_msg("%s: %s", error.rule != NULL ? error.rule : "no rule", error.message);
    return model;
}

void bytes_assert_refused(const struct bytes *bytes, const char *rule, uint64_t offset)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    bytes_open(bytes, bytes->length, &model, &error);
    zt_model_free(model);
    if (error.rule == NULL || strcmp(error.rule, rule) != 0 || error.offset != offset)
        print_error("wanted %s at %d: %s at %d, %s\n", rule, (int)offset,
                    error.rule != NULL ? error.rule : "no rule", (int)error.offset, error.message);
    assert_failure(&error, ZT_INVALID, rule, offset);
    assert_null(model);
}

void bytes_assert_unsupported(const struct bytes *bytes, const char *part_of_message)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    assert_int_equal(bytes_open(bytes, bytes->length, &model, &error), ZT_UNSUPPORTED);
    assert_null(model);
    assert_non_null(strstr(error.message, part_of_message));
}

/* Every object is found by its name, and every part is within the file. */
static void check_parts(const struct zt_model *model)
{
    for (uint32_t i = 0; i < model->object_count; i++)
        assert_ptr_equal(zt_model_find(model, zt_object_name(&model->objects[i])),
                         &model->objects[i]);
    for (uint32_t i = 0; i < model->component_count; i++) {
        const struct zt_component *part = &model->components[i];

        assert_true(part->offset <= model->file_size);
        assert_true(part->length <= model->file_size - part->offset);
    }
}

void bytes_assert_survive(const struct bytes *bytes, size_t first, size_t end)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    for (size_t length = first; length < bytes->length; length++) {
        zt_error_clear(&error);
        assert_int_equal(bytes_open(bytes, length, &model, &error), ZT_INVALID);
        assert_non_null(error.rule);
        assert_null(model);
    }
    for (size_t bit = first * 8; bit < end * 8; bit++) {
        bytes->at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        zt_error_clear(&error);
        if (bytes_open(bytes, bytes->length, &model, &error) == ZT_OK)
            check_parts(model);
        else
            assert_true(model == NULL && (error.rule != NULL || error.status == ZT_UNSUPPORTED));
        zt_model_free(model);
        model = NULL;
        bytes->at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}
