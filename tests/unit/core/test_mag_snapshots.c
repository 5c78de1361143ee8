/* .mag snapshots, versions 100 and 200. */
#include "tests.h"

#include "mag_file.h"

/* The second record states so many elements in its one dimension. */
static void state_elements(struct mag_file *file, enum mag_layout layout, uint64_t elements)
{
    mag_set_up(file, layout);
    file->records[1].shape[0] = file->records[1].elements = elements;
    mag_make(file);
}

TEST(open_refuses_records_of_snapshots)
{
    struct mag_file file;

    MAG_REFUSED(MAG_M3, dtype, 12, "Dtype", 0);
    MAG_REFUSED(MAG_M3, elements, 5, "DataSize", 8);
    MAG_REFUSED(MAG_M3, aux, 0x10000, "Reserved", 0);
    MAG_REFUSED(MAG_M3, offset, 25, "DataBounds", 16);
    state_elements(&file, MAG_M3, 5);
    mag_assert_refused(&file, "mag §Tensors DataBounds", file.record_at[1] + 16);
    state_elements(&file, MAG_M3, UINT64_MAX);
    mag_assert_refused(&file, "mag §Tensors Shape", file.record_at[1] + 24);
    state_elements(&file, MAG_M3, 3);
    mag_assert_refused(&file, "mag §Snapshot DataEnd", file.bytes.length - 1);
}

TEST(open_reads_the_types_of_version_200)
{
    static const struct {
        uint32_t number;
        enum zt_dtype dtype;
        enum zt_logical logical;
    } types[] = {
        {0, ZT_F32, ZT_LOGICAL_NONE},  {1, ZT_F16, ZT_LOGICAL_NONE},
        {2, ZT_BF16, ZT_LOGICAL_NONE}, {3, ZT_U8, ZT_LOGICAL_F8_E4M3FN},
        {4, ZT_BOOL, ZT_LOGICAL_NONE}, {5, ZT_U8, ZT_LOGICAL_NONE},
        {6, ZT_I8, ZT_LOGICAL_NONE},   {7, ZT_U16, ZT_LOGICAL_NONE},
        {8, ZT_I16, ZT_LOGICAL_NONE},  {9, ZT_U32, ZT_LOGICAL_NONE},
        {10, ZT_I32, ZT_LOGICAL_NONE}, {11, ZT_U64, ZT_LOGICAL_NONE},
        {12, ZT_I64, ZT_LOGICAL_NONE},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        struct mag_file file;
        struct zt_model *model = NULL;
        uint64_t width = zt_dtype_width(types[i].dtype);

        mag_set_up(&file, MAG_M4);
        file.records[1].dtype = types[i].number;
        file.records[1].shape[0] = file.records[1].elements = 4 / (width > 4 ? 4 : width);
        mag_make(&file);
        if (width == 8)
            bytes_append(&file.bytes, "\0\0\0", 4);
        model = bytes_model(&file.bytes);
        assert_int_equal(model->components[1].dtype, types[i].dtype);
        assert_int_equal(model->components[1].logical, types[i].logical);
        zt_model_free(model);
        bytes_free(&file.bytes);
    }
}

TEST(open_aligns_the_data_of_version_200)
{
    struct mag_file file;
    struct zt_model *model;
    size_t data;

    mag_set_up(&file, MAG_M4);
    mag_make(&file);
    data = (file.end + 4 + 15) / 16 * 16;
    model = bytes_model(&file.bytes);
    assert_int_equal(model->components[0].offset, data);
    assert_int_equal(model->components[1].offset, data + 32);
    zt_model_free(model);
    file.bytes.length--;
    bytes_assert_refused(&file.bytes, "mag §Tensors DataBounds", file.record_at[1] + 16);
    file.bytes.length = data - 1;
    bytes_assert_refused(&file.bytes, "mag §Tensors DataBounds", file.record_at[0] + 16);
    bytes_free(&file.bytes);
    MAG_REFUSED(MAG_M4, offset, 24, "DataBounds", 16);
    MAG_REFUSED(MAG_M4, offset, 48, "DataBounds", 16);
    MAG_REFUSED(MAG_M4, dtype, 13, "Dtype", 0);
    state_elements(&file, MAG_M4, 3);
    mag_assert_refused(&file, "mag §Snapshot DataEnd", file.bytes.length - 1);
}

/* magnetron 0.1.8 and 0.1.9 write tensors without elements, and pad before one at the end. */
TEST(open_reads_an_empty_last_tensor_of_version_200)
{
    struct mag_file file;
    struct zt_model *model = NULL;

    mag_set_up(&file, MAG_M4);
    file.records[1].shape[0] = file.records[1].elements = 0;
    mag_make(&file);
    file.bytes.length -= 4;
    model = bytes_model(&file.bytes);
    assert_int_equal(model->components[1].length, 0);
    zt_model_free(model);
    file.bytes.length--;
    bytes_assert_refused(&file.bytes, "mag §Tensors DataBounds", file.record_at[1] + 16);
    bytes_free(&file.bytes);
}

TEST(open_refuses_snapshots_whose_sections_are_wrong)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mag_set_up(&file, MAG_M3);
        mag_make(&file);
        bytes_put_le(file.bytes.at + cases[i].at, cases[i].value, cases[i].width);
        mag_seal(&file);
        bytes_assert_refused(&file.bytes, cases[i].rule, cases[i].offset);
        bytes_free(&file.bytes);
    }
    mag_set_up(&file, MAG_M3);
    mag_make(&file);
    file.bytes.at[24] = 1;
    bytes_assert_unsupported(&file.bytes, "metadata");
    bytes_free(&file.bytes);
}
