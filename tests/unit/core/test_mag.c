/* .mag files: the layouts of version 1, what all layouts share, and how they are distinguished. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mag_file.h"
#include "zt/digest.h"

/* --- what opens --- */

TEST(open_reads_every_layout_alike)
{
    for (enum mag_layout layout = MAG_M1; layout <= MAG_M4; layout++) {
        struct mag_file file;
        struct zt_model *model = NULL;

        mag_set_up(&file, layout);
        mag_make(&file);
        model = bytes_model(&file.bytes);
        assert_string_equal(model->format_name, "mag");
        assert_string_equal(model->version.bytes, layout == MAG_M4   ? "200"
                                                  : layout == MAG_M3 ? "100"
                                                                     : "1");
        assert_int_equal(model->object_count, 2);
        assert_int_equal(model->objects[0].rank, 2);
        assert_int_equal(zt_object_shape(model, &model->objects[0])[1], 3);
        assert_int_equal(model->components[0].dtype, ZT_F32);
        assert_int_equal(model->components[0].length, 24);
        assert_int_equal(model->objects[1].rank, 1);
        assert_int_equal(model->components[1].dtype, ZT_BOOL);
        assert_memory_equal(file.bytes.at + model->components[1].offset, "\1\0\0\1", 4);
        assert_json(model->attributes,
                    mag_layout_is_snapshot(layout) ? "{}" : "{\"epoch\":-7,\"lr\":0.5}");
        zt_model_free(model);
        bytes_free(&file.bytes);
    }
}

static uint32_t crc32_of(const uint8_t *bytes, size_t length)
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_ok(zt_hasher_new(ZT_DIGEST_CRC32, &hasher));
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    return (uint32_t)digest.bytes[0] << 24 | (uint32_t)digest.bytes[1] << 16 |
           (uint32_t)digest.bytes[2] << 8 | digest.bytes[3];
}

TEST(open_takes_every_reading_of_the_checksum)
{
    for (unsigned reading = 0; reading < 4; reading++) {
        struct mag_file file;
        struct zt_model *model = NULL;
        size_t from = reading % 2 == 0 ? 0 : 12;
        uint32_t sum;

        mag_set_up(&file, MAG_M1);
        mag_make(&file);
        bytes_put_le(file.bytes.at + 8, 0, 4);
        sum = reading < 2 ? crc32_of(file.bytes.at + from, file.end - from)
                          : zt_crc32c(0, file.bytes.at + from, file.end - from);
        bytes_put_le(file.bytes.at + 8, sum, 4);
        model = bytes_model(&file.bytes);
        zt_model_free(model);
        bytes_free(&file.bytes);
    }
}

TEST(open_infers_the_rank_of_the_specification_s_shapes)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mag_file file;
        struct zt_model *model = NULL;

        mag_set_up(&file, MAG_M1);
        memcpy(file.records[0].shape, cases[i].shape, sizeof(cases[i].shape));
        file.records[0].aux = cases[i].aux;
        file.records[0].length = cases[i].length;
        mag_make(&file);
        model = bytes_model(&file.bytes);
        assert_int_equal(model->objects[0].rank, cases[i].rank);
        zt_model_free(model);
        bytes_free(&file.bytes);
    }
}

TEST(open_reads_opaque_metadata_as_a_number)
{
    struct mag_file file;
    struct zt_model *model = NULL;

    mag_set_up(&file, MAG_M1);
    file.metadata_aux = 0;
    mag_make(&file);
    model = bytes_model(&file.bytes);
    assert_json(model->attributes, "{\"epoch\":-7,\"lr\":4602678819172646912}");
    zt_model_free(model);
    bytes_free(&file.bytes);
    mag_set_up(&file, MAG_M2);
    file.metadata_aux = 0;
    mag_make(&file);
    model = NULL;
    assert_int_equal(bytes_open(&file.bytes, file.bytes.length, &model, NULL), ZT_INVALID);
    bytes_free(&file.bytes);
}

/* --- what does not --- */

TEST(open_refuses_wrong_checksums)
{
    for (enum mag_layout layout = MAG_M1; layout <= MAG_M4; layout++) {
        struct mag_file file;

        mag_set_up(&file, layout);
        mag_make(&file);
        file.bytes.at[mag_layout_is_snapshot(layout) ? 17 : 9] ^= 1;
        bytes_assert_refused(&file.bytes, "mag §Header Checksum",
                             mag_layout_is_snapshot(layout) ? 16 : 8);
        bytes_free(&file.bytes);
    }
}

TEST(open_refuses_headers_with_wrong_numbers)
{
    struct mag_file file;

    mag_set_up(&file, MAG_M1);
    file.counts[0] = UINT32_MAX / 2;
    mag_assert_refused(&file, "mag §Header RecordCount", 12);
    mag_set_up(&file, MAG_M1);
    file.counts[1] = UINT32_MAX / 2;
    mag_assert_refused(&file, "mag §Header RecordCount", 12);
    mag_set_up(&file, MAG_M3);
    file.counts[0] = UINT32_MAX / 2;
    mag_assert_refused(&file, "mag §Header RecordCount", 28);
    mag_set_up(&file, MAG_M1);
    mag_make(&file);
    file.bytes.at[4] = 2;
    bytes_assert_refused(&file.bytes, "mag §Header Version", 4);
    file.bytes.at[4] = 100;
    bytes_assert_unsupported(&file.bytes, "version 100");
    file.bytes.at[4] = 200;
    bytes_assert_unsupported(&file.bytes, "version 200");
    file.bytes.length = 23;
    bytes_assert_refused(&file.bytes, "mag §Header FileTooSmall", 0);
    bytes_free(&file.bytes);
    mag_set_up(&file, MAG_M1);
    mag_make(&file);
    file.bytes.at[20] = 1;
    mag_seal(&file);
    bytes_assert_refused(&file.bytes, "mag §Header Reserved", 20);
    bytes_free(&file.bytes);
}

/* Keys of one byte: the shape begins five bytes in. */
#define SHAPE 5

TEST(open_refuses_records_of_the_specification_s_layout)
{
    struct mag_file file;

    MAG_REFUSED(MAG_M1, dtype, 4, "Dtype", SHAPE + 48);
    MAG_REFUSED(MAG_M1, length, 5, "DataSize", SHAPE + 49);
    MAG_REFUSED(MAG_M1, aux, 0x700, "Reserved", SHAPE + 65);
    MAG_REFUSED(MAG_M1, aux, 1, "Reserved", SHAPE + 65);
    MAG_REFUSED(MAG_M1, shape[2], UINT64_MAX, "Shape", SHAPE + 16);
    MAG_REFUSED(MAG_M1, shape[2], (uint64_t)1 << 62, "Shape", SHAPE);
    MAG_REFUSED(MAG_M1, offset, UINT64_MAX - 1, "DataBounds", 0);
    mag_set_up(&file, MAG_M1);
    file.records[1].shape[2] = 2;
    file.records[1].aux = 0x100;
    mag_make(&file);
    mag_assert_refused(&file, "mag §Tensors Shape", file.record_at[1] + SHAPE + 16);
    mag_set_up(&file, MAG_M1);
    file.records[1].offset = 64;
    mag_assert_refused(&file, "mag §Tensors DataBounds", 64);
}

TEST(open_refuses_records_of_magnetron_0_1_2)
{
    MAG_REFUSED(MAG_M2, dtype, 4, "Dtype", 0);
    MAG_REFUSED(MAG_M2, elements, 5, "DataSize", 20);
    MAG_REFUSED(MAG_M2, aux, 0x10000, "Reserved", 0);
    MAG_REFUSED(MAG_M2, rank, 7, "Shape", 0);
    MAG_REFUSED(MAG_M2, shape[0], 0, "Shape", 20);
    MAG_REFUSED(MAG_M2, offset, MAG_DATA_AT + 65, "DataBounds", 0);
}

TEST(open_refuses_bad_keys_and_metadata)
{
    struct mag_file file;

    mag_set_up(&file, MAG_M2);
    file.records[1].key = "";
    mag_make(&file);
    mag_assert_refused(&file, "mag §Names Name", file.end);
    file.records[1].key = "\xFF";
    mag_assert_refused(&file, "mag §Names Name", file.end);
    file.records[1].key = "a";
    mag_make(&file);
    mag_assert_refused(&file, "mag §Names DuplicateName", file.end - 1);
    mag_set_up(&file, MAG_M2);
    file.metadata_key = "epoch";
    mag_make(&file);
    mag_assert_refused(&file, "mag §Names DuplicateName", file.record_at[0] - 5);
    mag_set_up(&file, MAG_M1);
    file.metadata_aux = 3;
    mag_assert_refused(&file, "mag §Metadata Type", 24);
    mag_set_up(&file, MAG_M1);
    file.metadata_aux = 0x101;
    mag_assert_refused(&file, "mag §Metadata Type", 24);
}

TEST(open_refuses_data_that_overlap)
{
    struct mag_file file;

    mag_set_up(&file, MAG_M1);
    file.records[1].offset = MAG_DATA_AT + 20;
    mag_assert_refused(&file, "mag §Data Overlap", MAG_DATA_AT + 20);
}

TEST(open_refuses_prefixes_and_survives_flipped_bits)
{
    for (enum mag_layout layout = MAG_M1; layout <= MAG_M4; layout++) {
        struct mag_file file;
        struct zt_model *model = NULL;

        mag_set_up(&file, layout);
        mag_make(&file);
        for (size_t length = 4; length < file.bytes.length; length++)
            assert_int_equal(bytes_open(&file.bytes, length, &model, NULL), ZT_INVALID);
        for (size_t bit = 32; bit < file.end * 8; bit++) {
            file.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            /* First as it is, then with the checksum repaired. */
            for (unsigned sealed = 0; sealed < 2; sealed++) {
                enum zt_status status;

                if (sealed)
                    mag_seal(&file);
                status = bytes_open(&file.bytes, file.bytes.length, &model, NULL);
                assert_true(sealed || status != ZT_OK ||
                            (mag_layout_is_snapshot(layout) && bit < 20 * 8));
                zt_model_free(model);
                model = NULL;
            }
            file.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            mag_seal(&file);
        }
        bytes_free(&file.bytes);
    }
}
