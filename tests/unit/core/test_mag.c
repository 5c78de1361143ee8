/* .mag files: the two layouts of version 1, snapshots, and how they are distinguished. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zip_file.h"
#include "zt/attributes.h"
#include "zt/digest.h"

enum layout { M1, M2, M3 };

static void put(struct bytes *bytes, uint64_t value, unsigned width)
{
    uint8_t word[8];

    bytes_put_le(word, value, width);
    bytes_append(bytes, word, width);
}

static void put_key(struct bytes *bytes, const char *key)
{
    put(bytes, strlen(key), 4);
    bytes_append(bytes, key, strlen(key));
}

/* The fields of a record; a test changes one of them. */
struct record {
    const char *key;
    uint64_t shape[6];
    uint32_t dtype;
    uint32_t rank; /* M1: aux's second byte */
    uint32_t aux;  /* added to what the others make of it */
    uint64_t elements;
    uint64_t length;
    uint64_t offset; /* absolute; M3: from the data on */
};

/* Two tensors, "a" of six f32 and "b" of four bool, and two metadata. */
struct mag_file {
    enum layout layout;
    struct record records[2];
    const char *metadata_key;
    uint32_t metadata_aux;
    uint32_t counts[2]; /* added to the right ones: tensors, metadata */
    struct bytes bytes;
    size_t record_at[2];
    size_t metadata_at;
    size_t end; /* of the records */
};

#define DATA_AT 512

static void set_up(struct mag_file *file, enum layout layout)
{
    static const struct record records[2] = {
        {"a", {2, 3, 1, 1, 1, 1}, 0, 2, 0, 6, 24, DATA_AT},
        {"b", {4, 1, 1, 1, 1, 1}, 2, 1, 0, 4, 4, DATA_AT + 64}};

    memset(file, 0, sizeof(*file));
    file->layout = layout;
    memcpy(file->records, records, sizeof(records));
    file->metadata_key = "lr";
    file->metadata_aux = 2;
    if (layout == M3) {
        file->records[0].offset = 0;
        file->records[1].offset = 24;
        file->records[1].dtype = 3;
    }
}

static void append_record(struct mag_file *file, const struct record *record)
{
    struct bytes *bytes = &file->bytes;

    if (file->layout == M1) {
        put_key(bytes, record->key);
        for (unsigned i = 0; i < 6; i++)
            put(bytes, record->shape[i], 8);
        put(bytes, record->dtype, 1);
        put(bytes, record->length, 8);
        put(bytes, record->offset, 8);
        put(bytes, record->aux, 4);
        return;
    }
    put(bytes,
        file->layout == M2 ? record->dtype + (record->rank << 8) + record->aux
                           : record->rank + (record->dtype << 8) + record->aux,
        4);
    if (file->layout == M3)
        put(bytes, strcmp(record->key, "b") == 0, 4);
    put(bytes, record->elements, 8);
    put(bytes, record->offset, 8);
    for (unsigned i = 0; i < record->rank && i < 6; i++)
        put(bytes, record->shape[i], 8);
    if (file->layout == M2)
        put_key(bytes, record->key);
}

static void append_metadata(struct mag_file *file)
{
    double number = 0.5;
    uint64_t payload;

    memcpy(&payload, &number, sizeof(payload));
    file->metadata_at = file->bytes.length;
    put(&file->bytes, file->metadata_aux, 4);
    put(&file->bytes, payload, 8);
    put_key(&file->bytes, file->metadata_key);
    put(&file->bytes, 1, 4);
    put(&file->bytes, (uint64_t)-7, 8);
    put_key(&file->bytes, "epoch");
}

static void seal(struct mag_file *file)
{
    size_t at = file->layout == M3 ? 16 : 8;
    size_t from = file->layout == M3 ? 20 : 12;

    bytes_put_le(file->bytes.at + at, zt_crc32c(0, file->bytes.at + from, file->end - from), 4);
}

static void append_data(struct mag_file *file)
{
    static const uint8_t data[28] = {1, 2, 3, [24] = 1, 0, 0, 1};

    if (file->layout == M3) {
        bytes_append(&file->bytes, "BUF!", 4);
        bytes_append(&file->bytes, data, sizeof(data));
        return;
    }
    while (file->bytes.length < DATA_AT)
        bytes_append(&file->bytes, "\xFF", 1);
    bytes_append(&file->bytes, data, 24);
    while (file->bytes.length < DATA_AT + 64)
        bytes_append(&file->bytes, "\xFF", 1);
    bytes_append(&file->bytes, data + 24, 4);
}

static void make(struct mag_file *file)
{
    struct bytes *bytes = &file->bytes;

    bytes_free(bytes);
    bytes_append(bytes, "MAG!", 4);
    put(bytes, file->layout == M3 ? 100 : 1, 4);
    if (file->layout == M3) {
        put(bytes, 1700000000, 8);
        put(bytes, 0, 8);
        put(bytes, 0, 4);
        put(bytes, 2 + file->counts[0], 4);
        bytes_append(bytes, "SRP!", 4);
        put(bytes, 2, 4);
        put(bytes, 0, 4);
        put(bytes, 1, 4);
        put(bytes, 2, 4);
        bytes_append(bytes, "abMDT!DSC!", 10);
    } else {
        put(bytes, 0, 4);
        put(bytes, 2 + file->counts[0], 4);
        put(bytes, 2 + file->counts[1], 4);
        put(bytes, 0, 4);
        append_metadata(file);
    }
    for (unsigned i = 0; i < 2; i++) {
        file->record_at[i] = bytes->length;
        append_record(file, &file->records[i]);
    }
    file->end = bytes->length;
    append_data(file);
    seal(file);
}

static void refused(struct mag_file *file, const char *rule, uint64_t offset)
{
    make(file);
    bytes_assert_refused(&file->bytes, rule, offset);
    bytes_free(&file->bytes);
}

/* --- what opens --- */

static void collect(void *context, const char *text, size_t length)
{
    strncat(context, text, length);
}

static void open_reads_every_layout_alike(void **state)
{
    (void)state;
    for (enum layout layout = M1; layout <= M3; layout++) {
        struct mag_file file;
        struct zt_model *model = NULL;
        char json[256] = "";

        set_up(&file, layout);
        make(&file);
        assert_int_equal(bytes_open(&file.bytes, file.bytes.length, &model, NULL), ZT_OK);
        assert_string_equal(model->format_name, "mag");
        assert_string_equal(model->version.bytes, layout == M3 ? "100" : "1");
        assert_int_equal(model->object_count, 2);
        assert_int_equal(model->objects[0].rank, 2);
        assert_int_equal(zt_object_shape(model, &model->objects[0])[1], 3);
        assert_int_equal(model->components[0].dtype, ZT_F32);
        assert_int_equal(model->components[0].length, 24);
        assert_int_equal(model->objects[1].rank, 1);
        assert_int_equal(model->components[1].dtype, ZT_BOOL);
        assert_memory_equal(file.bytes.at + model->components[1].offset, "\1\0\0\1", 4);
        assert_int_equal(zt_attributes_write_json(model->attributes, collect, json, NULL), ZT_OK);
        assert_string_equal(json, layout == M3 ? "{}" : "{\"epoch\":-7,\"lr\":0.5}");
        zt_model_free(model);
        bytes_free(&file.bytes);
    }
}

static uint32_t crc32_of(const uint8_t *bytes, size_t length)
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_int_equal(zt_hasher_new(ZT_DIGEST_CRC32, &hasher), ZT_OK);
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    return (uint32_t)digest.bytes[0] << 24 | (uint32_t)digest.bytes[1] << 16 |
           (uint32_t)digest.bytes[2] << 8 | digest.bytes[3];
}

static void open_takes_every_reading_of_the_checksum(void **state)
{
    (void)state;
    for (unsigned reading = 0; reading < 4; reading++) {
        struct mag_file file;
        struct zt_model *model = NULL;
        size_t from = reading % 2 == 0 ? 0 : 12;
        uint32_t sum;

        set_up(&file, M1);
        make(&file);
        bytes_put_le(file.bytes.at + 8, 0, 4);
        sum = reading < 2 ? crc32_of(file.bytes.at + from, file.end - from)
                          : zt_crc32c(0, file.bytes.at + from, file.end - from);
        bytes_put_le(file.bytes.at + 8, sum, 4);
        assert_int_equal(bytes_open(&file.bytes, file.bytes.length, &model, NULL), ZT_OK);
        zt_model_free(model);
        bytes_free(&file.bytes);
    }
}

static void open_infers_the_rank_of_the_specification_s_shapes(void **state)
{
    static const struct {
        uint64_t shape[6];
        uint32_t aux;
        uint64_t length;
        unsigned rank;
    } cases[] = {
        {{2, 3, 1, 1, 1, 1}, 0, 24, 2},    {{2, 3, 0, 0, 0, 0}, 0, 24, 2},
        {{1, 1, 1, 1, 1, 1}, 0, 4, 1},     {{1, 6, 1, 1, 1, 1}, 0x300, 24, 3},
        {{1, 2, 1, 1, 1, 3}, 0, 24, 6},    {{0, 0, 0, 0, 0, 0}, 0, 0, 1},
        {{5, 0, 1, 1, 1, 1}, 0, 0, 2},     {{0, 7, 1, 1, 1, 1}, 0, 0, 2},
        {{5, 0, 2, 1, 1, 1}, 0x400, 0, 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mag_file file;
        struct zt_model *model = NULL;

        set_up(&file, M1);
        memcpy(file.records[0].shape, cases[i].shape, sizeof(cases[i].shape));
        file.records[0].aux = cases[i].aux;
        file.records[0].length = cases[i].length;
        make(&file);
        assert_int_equal(bytes_open(&file.bytes, file.bytes.length, &model, NULL), ZT_OK);
        assert_int_equal(model->objects[0].rank, cases[i].rank);
        zt_model_free(model);
        bytes_free(&file.bytes);
    }
}

static void open_reads_opaque_metadata_as_a_number(void **state)
{
    struct mag_file file;
    struct zt_model *model = NULL;
    char json[256] = "";

    (void)state;
    set_up(&file, M1);
    file.metadata_aux = 0;
    make(&file);
    assert_int_equal(bytes_open(&file.bytes, file.bytes.length, &model, NULL), ZT_OK);
    assert_int_equal(zt_attributes_write_json(model->attributes, collect, json, NULL), ZT_OK);
    assert_string_equal(json, "{\"epoch\":-7,\"lr\":4602678819172646912}");
    zt_model_free(model);
    bytes_free(&file.bytes);
    set_up(&file, M2);
    file.metadata_aux = 0;
    make(&file);
    assert_int_equal(bytes_open(&file.bytes, file.bytes.length, &model, NULL), ZT_INVALID);
    bytes_free(&file.bytes);
}

/* --- what does not --- */

static void open_refuses_wrong_checksums(void **state)
{
    (void)state;
    for (enum layout layout = M1; layout <= M3; layout++) {
        struct mag_file file;

        set_up(&file, layout);
        make(&file);
        file.bytes.at[layout == M3 ? 17 : 9] ^= 1;
        bytes_assert_refused(&file.bytes, "mag §Header Checksum", layout == M3 ? 16 : 8);
        bytes_free(&file.bytes);
    }
}

static void open_refuses_headers_with_wrong_numbers(void **state)
{
    struct mag_file file;

    (void)state;
    set_up(&file, M1);
    file.counts[0] = UINT32_MAX / 2;
    refused(&file, "mag §Header RecordCount", 12);
    set_up(&file, M1);
    file.counts[1] = UINT32_MAX / 2;
    refused(&file, "mag §Header RecordCount", 12);
    set_up(&file, M3);
    file.counts[0] = UINT32_MAX / 2;
    refused(&file, "mag §Header RecordCount", 28);
    set_up(&file, M1);
    make(&file);
    file.bytes.at[4] = 2;
    bytes_assert_refused(&file.bytes, "mag §Header Version", 4);
    file.bytes.at[4] = 100;
    bytes_assert_unsupported(&file.bytes, "version 100");
    file.bytes.length = 23;
    bytes_assert_refused(&file.bytes, "mag §Header FileTooSmall", 0);
    bytes_free(&file.bytes);
    set_up(&file, M1);
    make(&file);
    file.bytes.at[20] = 1;
    seal(&file);
    bytes_assert_refused(&file.bytes, "mag §Header Reserved", 20);
    bytes_free(&file.bytes);
}

/* From the beginning of a record to the byte that is changed. */
static void open_refuses_records_of_the_specification_s_layout(void **state)
{
    struct mag_file file;
    /* Records, keys of one byte: the shape begins five bytes in. */
    const size_t shape = 5;

    (void)state;
    set_up(&file, M1);
    file.records[1].dtype = 4;
    make(&file);
    refused(&file, "mag §Tensors Dtype", file.record_at[1] + shape + 48);
    file.records[1].dtype = 2;
    file.records[1].length = 5;
    refused(&file, "mag §Tensors DataSize", file.record_at[1] + shape + 49);
    file.records[1].length = 4;
    file.records[1].aux = 0x700;
    refused(&file, "mag §Tensors Reserved", file.record_at[1] + shape + 65);
    file.records[1].aux = 1;
    refused(&file, "mag §Tensors Reserved", file.record_at[1] + shape + 65);
    file.records[1].aux = 0;
    file.records[1].shape[2] = UINT64_MAX;
    refused(&file, "mag §Tensors Shape", file.record_at[1] + shape + 16);
    file.records[1].shape[2] = 2;
    file.records[1].aux = 0x100;
    refused(&file, "mag §Tensors Shape", file.record_at[1] + shape + 16);
    file.records[1].aux = 0;
    file.records[1].shape[2] = (uint64_t)1 << 62;
    refused(&file, "mag §Tensors Shape", file.record_at[1] + shape);
    file.records[1].shape[2] = 1;
    file.records[1].offset = UINT64_MAX - 1;
    refused(&file, "mag §Tensors DataBounds", file.record_at[1]);
    file.records[1].offset = 64;
    refused(&file, "mag §Tensors DataBounds", 64);
}

static void open_refuses_records_of_magnetron_0_1_2(void **state)
{
    struct mag_file file;

    (void)state;
    set_up(&file, M2);
    file.records[1].dtype = 4;
    make(&file);
    refused(&file, "mag §Tensors Dtype", file.record_at[1]);
    file.records[1].dtype = 2;
    file.records[1].elements = 5;
    refused(&file, "mag §Tensors DataSize", file.record_at[1] + 20);
    file.records[1].elements = 4;
    file.records[1].aux = 0x10000;
    refused(&file, "mag §Tensors Reserved", file.record_at[1]);
    file.records[1].aux = 0;
    file.records[1].rank = 7;
    refused(&file, "mag §Tensors Shape", file.record_at[1]);
    file.records[1].rank = 1;
    file.records[1].shape[0] = 0;
    refused(&file, "mag §Tensors Shape", file.record_at[1] + 20);
    file.records[1].shape[0] = 4;
    file.records[1].offset = DATA_AT + 65;
    refused(&file, "mag §Tensors DataBounds", file.record_at[1]);
}

static void open_refuses_records_of_snapshots(void **state)
{
    struct mag_file file;

    (void)state;
    set_up(&file, M3);
    file.records[1].dtype = 12;
    make(&file);
    refused(&file, "mag §Tensors Dtype", file.record_at[1]);
    file.records[1].dtype = 3;
    file.records[1].elements = 5;
    refused(&file, "mag §Tensors DataSize", file.record_at[1] + 8);
    file.records[1].elements = 4;
    file.records[1].aux = 0x10000;
    refused(&file, "mag §Tensors Reserved", file.record_at[1]);
    file.records[1].aux = 0;
    file.records[1].offset = 25;
    refused(&file, "mag §Tensors DataBounds", file.record_at[1] + 16);
    file.records[1].offset = 24;
    file.records[1].shape[0] = file.records[1].elements = 5;
    refused(&file, "mag §Tensors DataBounds", file.record_at[1] + 16);
    file.records[1].shape[0] = file.records[1].elements = UINT64_MAX;
    refused(&file, "mag §Tensors Shape", file.record_at[1] + 24);
    file.records[1].shape[0] = file.records[1].elements = 3;
    make(&file);
    refused(&file, "mag §Snapshot DataEnd", file.bytes.length - 1);
}

static void open_refuses_snapshots_whose_sections_are_wrong(void **state)
{
    static const struct {
        size_t at;
        unsigned width;
        uint64_t value;
        const char *rule;
        uint64_t offset;
    } cases[] = {
        {20, 4, 1, "mag §Header Reserved", 20},  {36, 4, UINT32_MAX, "mag §Snapshot Section", 40},
        {40, 4, 1, "mag §Snapshot Strings", 40}, {44, 4, 3, "mag §Snapshot Strings", 48},
        {48, 4, 3, "mag §Snapshot Section", 55}, {48, 4, UINT32_MAX, "mag §Snapshot Strings", 48},
        {54, 4, 0, "mag §Snapshot Section", 54}, {58, 4, 0, "mag §Snapshot Section", 58},
        {52, 1, 0, "mag §Names Name", 52},       {53, 1, 'a', "mag §Names DuplicateName", 53},
    };
    struct mag_file file;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        set_up(&file, M3);
        make(&file);
        bytes_put_le(file.bytes.at + cases[i].at, cases[i].value, cases[i].width);
        seal(&file);
        bytes_assert_refused(&file.bytes, cases[i].rule, cases[i].offset);
        bytes_free(&file.bytes);
    }
    set_up(&file, M3);
    make(&file);
    file.bytes.at[24] = 1;
    bytes_assert_unsupported(&file.bytes, "metadata");
    bytes_free(&file.bytes);
}

static void open_refuses_bad_keys_and_metadata(void **state)
{
    struct mag_file file;

    (void)state;
    set_up(&file, M2);
    file.records[1].key = "";
    make(&file);
    refused(&file, "mag §Names Name", file.end);
    file.records[1].key = "\xFF";
    refused(&file, "mag §Names Name", file.end);
    file.records[1].key = "a";
    make(&file);
    refused(&file, "mag §Names DuplicateName", file.end - 1);
    set_up(&file, M2);
    file.metadata_key = "epoch";
    make(&file);
    refused(&file, "mag §Names DuplicateName", file.record_at[0] - 5);
    set_up(&file, M1);
    file.metadata_aux = 3;
    refused(&file, "mag §Metadata Type", 24);
    set_up(&file, M1);
    file.metadata_aux = 0x101;
    refused(&file, "mag §Metadata Type", 24);
}

static void open_refuses_data_that_overlap(void **state)
{
    struct mag_file file;

    (void)state;
    set_up(&file, M1);
    file.records[1].offset = DATA_AT + 20;
    refused(&file, "mag §Data Overlap", DATA_AT + 20);
}

static void open_refuses_prefixes_and_survives_flipped_bits(void **state)
{
    (void)state;
    for (enum layout layout = M1; layout <= M3; layout++) {
        struct mag_file file;
        struct zt_model *model = NULL;

        set_up(&file, layout);
        make(&file);
        for (size_t length = 4; length < file.bytes.length; length++)
            assert_int_equal(bytes_open(&file.bytes, length, &model, NULL), ZT_INVALID);
        for (size_t bit = 32; bit < file.end * 8; bit++) {
            file.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            /* First as it is, then with the checksum repaired. */
            for (unsigned sealed = 0; sealed < 2; sealed++) {
                enum zt_status status;

                if (sealed)
                    seal(&file);
                status = bytes_open(&file.bytes, file.bytes.length, &model, NULL);
                assert_true(sealed || status != ZT_OK || (layout == M3 && bit < 20 * 8));
                zt_model_free(model);
                model = NULL;
            }
            file.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            seal(&file);
        }
        bytes_free(&file.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_reads_every_layout_alike),
        cmocka_unit_test(open_takes_every_reading_of_the_checksum),
        cmocka_unit_test(open_infers_the_rank_of_the_specification_s_shapes),
        cmocka_unit_test(open_reads_opaque_metadata_as_a_number),
        cmocka_unit_test(open_refuses_wrong_checksums),
        cmocka_unit_test(open_refuses_headers_with_wrong_numbers),
        cmocka_unit_test(open_refuses_records_of_the_specification_s_layout),
        cmocka_unit_test(open_refuses_records_of_magnetron_0_1_2),
        cmocka_unit_test(open_refuses_records_of_snapshots),
        cmocka_unit_test(open_refuses_snapshots_whose_sections_are_wrong),
        cmocka_unit_test(open_refuses_bad_keys_and_metadata),
        cmocka_unit_test(open_refuses_data_that_overlap),
        cmocka_unit_test(open_refuses_prefixes_and_survives_flipped_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
