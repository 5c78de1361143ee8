/* NPZ archives: directory, entries, names and digests. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "zip_file.h"
#include "zt/verify.h"

/* In a record of the directory and in a local header. */
enum {
    RECORD_FLAGS = 8,
    RECORD_METHOD = 10,
    RECORD_CRC = 16,
    RECORD_STORED = 20,
    RECORD_LENGTH = 24,
    RECORD_NAME = 28,
    RECORD_EXTRA = 30,
    RECORD_DISK = 34,
    RECORD_OFFSET = 42,
    RECORD_TEXT = 46
};
enum {
    LOCAL_FLAGS = 6,
    LOCAL_METHOD = 8,
    LOCAL_CRC = 14,
    LOCAL_STORED = 18,
    LOCAL_LENGTH = 22,
    LOCAL_NAME = 26,
    LOCAL_TEXT = 30
};

static void make(struct zip_file *zip, enum zip_file_kind kind)
{
    zip_file_add_u8(zip, "b.npy", kind, 5);
    zip_file_add_u8(zip, "a.npy", kind, 200);
    zip_file_end(zip, "", false);
}

static void assert_verified(const struct zip_file *zip, const struct zt_model *model)
{
    struct zt_source *source;

    assert_int_equal(zt_source_from_memory(zip->bytes.at, zip->bytes.length, &source, NULL), ZT_OK);
    for (uint32_t i = 0; i < model->component_count; i++) {
        struct zt_component_check check;

        assert_int_equal(
            zt_component_check(model, &model->components[i], source, NULL, &check, NULL), ZT_OK);
        assert_int_equal(check.verdict, ZT_VERDICT_VERIFIED);
        assert_string_equal(check.expected, check.actual);
        assert_int_equal(check.hashed_bytes, model->components[i].length);
    }
    zt_source_close(source);
}

static void open_lists_entries_of_every_kind(void **state)
{
    (void)state;
    for (enum zip_file_kind kind = ZIP_FILE_STORED; kind <= ZIP_FILE_DESCRIPTOR; kind++) {
        struct zip_file zip = {0};
        struct zt_model *model = NULL;
        const struct zt_object *object;
        const struct zt_component *component;
        bool deflated;

        make(&zip, kind);
        assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, NULL), ZT_OK);
        assert_int_equal(model->format, ZT_FORMAT_NPZ);
        assert_int_equal(model->object_count, 2);
        assert_int_equal(model->manifest_offset, zip.directory_at);
        object = zt_model_find(model, (struct zt_text){"a", 1});
        component = zt_object_components(model, object);
        deflated = kind == ZIP_FILE_DEFLATED;
        assert_int_equal(component->decoded_length, 200);
        assert_string_equal(component->encoding_name, deflated ? "deflate" : "raw");
        assert_int_equal(component->offset,
                         deflated ? zip.data_at[1]
                                  : zip.data_at[1] + component->arrangement->lead_bytes);
        assert_int_equal(component->length, deflated ? zip.data_length[1] : 200);
        assert_int_equal(zt_component_is_plain(component), !deflated);
        assert_verified(&zip, model);
        zt_model_free(model);
        zip_file_free(&zip);
    }
}

static void open_takes_empty_archives_comments_and_zip64(void **state)
{
    struct zip_file zip = {0};
    struct zt_model *model = NULL;

    (void)state;

    zip_file_end(&zip, "", false);
    assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, NULL), ZT_OK);
    assert_int_equal(model->object_count, 0);
    zt_model_free(model);
    zip_file_free(&zip);
    for (unsigned wide = 0; wide < 2; wide++) {
        zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 5);
        zip_file_add_u8(&zip, "notes.txt", ZIP_FILE_STORED, 5);
        zip_file_end(&zip, "a comment with PK\5\6 and more behind it than the record", wide);
        assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, NULL), ZT_OK);
        assert_int_equal(model->object_count, 1);
        zt_model_free(model);
        zip_file_free(&zip);
    }
}

static void open_decodes_names_that_writers_encode(void **state)
{
    static const char *const names[][2] = {
        {"a/b.npy", "a/b"},
        {"x%2Fy%3a.npy", "x/y:"},
        {"50%25.npy", "50%"},
        {"100%.npy", "100%"},
        {"%41%7a%zz%2.npy", "%41%7a%zz%2"},
        {"%5C%09.npy", "\\\t"},
        {"na\xC3\xAFve.npy", "na\xC3\xAFve"},
    };
    struct zip_file zip = {0};
    struct zt_model *model = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        zip_file_add_u8(&zip, names[i][0], ZIP_FILE_STORED, 1);
    zip_file_end(&zip, "", false);
    assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, NULL), ZT_OK);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_non_null(zt_model_find(model, (struct zt_text){names[i][1], strlen(names[i][1])}));
    zt_model_free(model);
    zip_file_free(&zip);
}

static void open_refuses_names_that_cannot_be(void **state)
{
    static const char *const names[] = {".npy", "a%00.npy", "a\xFF.npy"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct zip_file zip = {0};

        zip_file_add_u8(&zip, names[i], ZIP_FILE_STORED, 1);
        zip_file_end(&zip, "", false);
        bytes_assert_refused(&zip.bytes, "npz §Names Name", zip.record_at[0]);
        zip_file_free(&zip);
    }
}

static void open_refuses_names_that_occur_twice(void **state)
{
    struct zip_file zip = {0};
    struct zt_model *model;
    struct zt_error error;

    (void)state;
    zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 1);
    zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 1);
    zip_file_end(&zip, "", false);
    bytes_assert_refused(&zip.bytes, "npz §Names DuplicateName", zip.record_at[1] + RECORD_TEXT);
    zip_file_free(&zip);
    zip_file_add_u8(&zip, "a/b.npy", ZIP_FILE_STORED, 1);
    zip_file_add_u8(&zip, "a%2Fb.npy", ZIP_FILE_STORED, 1);
    zip_file_end(&zip, "", false);
    model = NULL;
    assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, &error), ZT_INVALID);
    assert_string_equal(error.rule, "npz §Names DuplicateName");
    assert_string_equal(error.object, "a/b");
    zip_file_free(&zip);
}

static void open_calls_what_it_does_not_read_unsupported(void **state)
{
    static const struct {
        unsigned at, width;
        uint64_t value;
        const char *message;
    } cases[] = {
        {RECORD_FLAGS, 2, 1, "encrypted"},      {RECORD_FLAGS, 2, 0x40, "encrypted"},
        {RECORD_FLAGS, 2, 0x2000, "encrypted"}, {RECORD_FLAGS, 2, 0x20, "patch"},
        {RECORD_METHOD, 2, 12, "method 12"},    {RECORD_DISK, 2, 1, "volumes"},
    };
    struct zip_file zip = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        make(&zip, ZIP_FILE_STORED);
        bytes_put_le(zip.bytes.at + zip.record_at[1] + cases[i].at, cases[i].value, cases[i].width);
        bytes_assert_unsupported(&zip.bytes, cases[i].message);
        zip_file_free(&zip);
    }
    make(&zip, ZIP_FILE_STORED);
    zip.bytes.at[zip.end_at + 4] = 1;
    bytes_assert_unsupported(&zip.bytes, "volumes");
    zip_file_free(&zip);
    zip_file_add_u8(&zip, "archive/data.pkl", ZIP_FILE_STORED, 1);
    zip_file_end(&zip, "", false);
    /* Handed on to the reader of PyTorch's archives, which finds no version. */
    bytes_assert_refused(&zip.bytes, "pt §Archive Version", zip.directory_at);
    zip_file_free(&zip);
    zip_file_add_u8(&zip, "a.txt", ZIP_FILE_STORED, 1);
    zip_file_end(&zip, "", false);
    bytes_assert_unsupported(&zip.bytes, "ZIP archive without");
    zip_file_free(&zip);
}

static void open_names_the_array_it_refuses(void **state)
{
    struct bytes array = {NULL, 0};
    struct zip_file zip = {0};
    struct zt_model *model = NULL;
    struct zt_error error;

    (void)state;
    npy_append(&array, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "x", 1);
    zip_file_add(&zip, "objects.npy", ZIP_FILE_DEFLATED, &array);
    zip_file_end(&zip, "", false);
    assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, &error), ZT_UNSUPPORTED);
    assert_string_equal(error.object, "objects");
    bytes_free(&array);
    zip_file_free(&zip);
}

/* One number of the first archive is changed; the failure is at the record. */
static void open_refuses_directories_with_wrong_numbers(void **state)
{
    static const struct {
        bool in_end;
        unsigned at, width;
        uint64_t value;
        const char *rule;
        bool at_record; /* else at the end record */
    } cases[] = {
        {true, 16, 4, 0, "zip §Directory Bounds", false},
        {true, 12, 4, 1, "zip §Directory Bounds", false},
        {true, 16, 4, 0xFFFFFFF0, "zip §Directory Bounds", false},
        {false, 0, 4, 0, "zip §Directory Entry", true},
        {false, RECORD_NAME, 2, 0xFFFF, "zip §Directory Entry", true},
        {false, RECORD_LENGTH, 4, UINT32_MAX, "zip §Directory Entry", true},
        {false, RECORD_OFFSET, 4, 0xFFFFFFF0, "zip §Entry Bounds", true},
        {false, RECORD_STORED, 4, 0x10000, "zip §Entry Bounds", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct zip_file zip = {0};

        make(&zip, ZIP_FILE_STORED);
        bytes_put_le(zip.bytes.at + (cases[i].in_end ? zip.end_at : zip.record_at[0]) + cases[i].at,
                     cases[i].value, cases[i].width);
        bytes_assert_refused(&zip.bytes, cases[i].rule,
                             cases[i].at_record ? zip.record_at[0] : zip.end_at);
        zip_file_free(&zip);
    }
}

static void set_counts(struct zip_file *zip, uint64_t count)
{
    bytes_put_le(zip->bytes.at + zip->end_at + 8, count, 2);
    bytes_put_le(zip->bytes.at + zip->end_at + 10, count, 2);
}

static void open_refuses_counts_that_are_not_the_directory_s(void **state)
{
    struct zip_file zip = {0};

    (void)state;
    make(&zip, ZIP_FILE_STORED);
    set_counts(&zip, 1);
    bytes_assert_refused(&zip.bytes, "zip §Directory EntryCount", zip.record_at[1]);
    set_counts(&zip, 0);
    bytes_assert_refused(&zip.bytes, "zip §Directory EntryCount", zip.record_at[0]);
    set_counts(&zip, 60000);
    bytes_assert_refused(&zip.bytes, "zip §Directory EntryCount", zip.end_at);
    zip_file_free(&zip);
}

static void open_refuses_files_without_end_record(void **state)
{
    struct zip_file zip = {0};

    (void)state;
    make(&zip, ZIP_FILE_STORED);
    bytes_append(&zip.bytes, "x", 1);
    bytes_assert_refused(&zip.bytes, "zip §Directory EndRecord", zip.bytes.length - 22);
    zip.bytes.length = 21;
    bytes_assert_refused(&zip.bytes, "zip §Directory EndRecord", 0);
    zip_file_free(&zip);
}

static void open_refuses_zip64_with_wrong_numbers(void **state)
{
    struct zip_file zip = {0};
    uint8_t *bytes;

    (void)state;
    zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 5);
    zip_file_end(&zip, "", true);
    bytes = zip.bytes.at;
    bytes[zip.end_at - 20 + 8]--;
    bytes_assert_refused(&zip.bytes, "zip §Directory EndRecord", zip.end64_at - 1);
    bytes_put_le(bytes + zip.end_at - 20 + 8, UINT64_MAX, 8);
    bytes_assert_refused(&zip.bytes, "zip §Directory EndRecord", zip.end_at - 20);
    bytes_put_le(bytes + zip.end_at - 20 + 8, zip.end64_at, 8);
    bytes_put_le(bytes + zip.end_at + 12, 7, 4);
    bytes_assert_refused(&zip.bytes, "zip §Directory EndRecord", zip.end64_at);
    bytes_put_le(bytes + zip.end_at + 12, UINT32_MAX, 4);
    bytes_put_le(bytes + zip.end64_at + 40, UINT64_MAX, 8);
    bytes_assert_refused(&zip.bytes, "zip §Directory Bounds", zip.end64_at);
    zip_file_free(&zip);
}

static void open_refuses_local_headers_that_differ(void **state)
{
    static const struct {
        unsigned at, width;
        uint64_t value;
    } cases[] = {
        {0, 4, 0},
        {LOCAL_FLAGS, 2, 1},
        {LOCAL_FLAGS, 2, 8},
        {LOCAL_METHOD, 2, 8},
        {LOCAL_CRC, 4, 0},
        {LOCAL_STORED, 4, 0},
        {LOCAL_LENGTH, 4, 0},
        {LOCAL_NAME, 2, 4},
        {LOCAL_TEXT, 1, 'x'},
        {LOCAL_LENGTH, 4, UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct zip_file zip = {0};

        make(&zip, ZIP_FILE_STORED);
        bytes_put_le(zip.bytes.at + zip.local_at[1] + cases[i].at, cases[i].value, cases[i].width);
        bytes_assert_refused(&zip.bytes, "zip §Entry LocalHeader", zip.local_at[1]);
        zip_file_free(&zip);
    }
}

/* Both headers state a length that is not the array's. */
static void set_lengths(struct zip_file *zip, unsigned number, unsigned record, uint64_t value)
{
    bytes_put_le(zip->bytes.at + zip->record_at[number] + record, value, 4);
    bytes_put_le(zip->bytes.at + zip->local_at[number] + record - 2, value, 4);
}

static void open_refuses_entries_of_other_sizes(void **state)
{
    struct zip_file zip = {0};

    (void)state;
    make(&zip, ZIP_FILE_STORED);
    set_lengths(&zip, 0, RECORD_LENGTH, zip.data_length[0] - 1);
    bytes_assert_refused(&zip.bytes, "zip §Entry Size", zip.record_at[0]);
    set_lengths(&zip, 0, RECORD_STORED, zip.data_length[0] - 1);
    bytes_assert_refused(&zip.bytes, "npz §Entry Size", zip.record_at[0]);
    set_lengths(&zip, 0, RECORD_LENGTH, zip.data_length[0]);
    bytes_assert_refused(&zip.bytes, "zip §Entry Size", zip.record_at[0]);
    zip_file_free(&zip);
    make(&zip, ZIP_FILE_DEFLATED);
    set_lengths(&zip, 0, RECORD_LENGTH, 500);
    bytes_assert_refused(&zip.bytes, "npz §Entry Size", zip.record_at[0]);
    set_lengths(&zip, 0, RECORD_LENGTH, UINT32_MAX - 1);
    bytes_assert_refused(&zip.bytes, "zip §Deflate Ratio", zip.data_at[0]);
    zip_file_free(&zip);
}

static void open_refuses_streams_that_do_not_inflate(void **state)
{
    struct zip_file zip = {0};

    (void)state;
    make(&zip, ZIP_FILE_DEFLATED);
    zip.bytes.at[zip.data_at[1]] = 0x07;
    bytes_assert_refused(&zip.bytes, "zip §Deflate Stream", zip.data_at[1]);
    zip_file_free(&zip);
}

static void open_refuses_entries_that_overlap(void **state)
{
    struct bytes array = {NULL, 0};
    struct zip_file inner = {0};
    struct zip_file zip = {0};
    char dict[96];
    size_t header;
    size_t inner_at;

    /* The data of the first array are an archive, whose entry is in the directory too. */
    (void)state;
    make(&inner, ZIP_FILE_STORED);
    snprintf(dict, sizeof(dict), "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,)}",
             inner.directory_at);
    header = npy_append(&array, dict, inner.bytes.at, inner.directory_at);
    zip_file_add(&zip, "outer.npy", ZIP_FILE_STORED, &array);
    inner_at = zip.data_at[0] + header + inner.local_at[1];
    zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 200);
    zip_file_end(&zip, "", false);
    bytes_put_le(zip.bytes.at + zip.record_at[1] + RECORD_OFFSET, inner_at, 4);
    bytes_assert_refused(&zip.bytes, "zip §Entry Overlap", inner_at);
    bytes_free(&array);
    zip_file_free(&inner);
    zip_file_free(&zip);
}

static void check_finds_every_flipped_bit_of_an_entry(void **state)
{
    (void)state;
    for (enum zip_file_kind kind = ZIP_FILE_STORED; kind <= ZIP_FILE_DEFLATED; kind++) {
        struct zip_file zip = {0};
        struct zt_model *model = NULL;
        struct zt_source *source;

        make(&zip, kind);
        assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, NULL), ZT_OK);
        assert_int_equal(zt_source_from_memory(zip.bytes.at, zip.bytes.length, &source, NULL),
                         ZT_OK);
        for (size_t bit = zip.data_at[0] * 8; bit < (zip.data_at[0] + zip.data_length[0]) * 8;
             bit++) {
            struct zt_component_check check;

            zip.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(
                zt_component_check(model, &model->components[0], source, NULL, &check, NULL),
                ZT_OK);
            /* After its last symbol a deflated stream has up to seven meaningless bits. */
            if (bit < (zip.data_at[0] + zip.data_length[0]) * 8 - 7)
                assert_int_equal(check.verdict, ZT_VERDICT_FAILED);
            zip.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        zt_source_close(source);
        zt_model_free(model);
        zip_file_free(&zip);
    }
}

static void crc32_is_a_digest_in_npz_only(void **state)
{
    struct zt_component component = {.digest = "crc32:cbf43926", .digest_length = 14};
    struct zt_model model = {.format = ZT_FORMAT_NPZ};
    struct zt_digest digest;

    (void)state;
    assert_int_equal(zt_component_digest(&model, &component, &digest, NULL), ZT_OK);
    assert_int_equal(digest.algorithm, ZT_DIGEST_CRC32);
    model.format = ZT_FORMAT_ZT1;
    assert_int_equal(zt_component_digest(&model, &component, &digest, NULL), ZT_UNSUPPORTED);
}

static void open_survives_prefixes_and_flipped_bits(void **state)
{
    (void)state;
    for (unsigned wide = 0; wide < 2; wide++) {
        struct zip_file zip = {0};
        struct zt_model *model = NULL;

        zip_file_add_u8(&zip, "b.npy", ZIP_FILE_ZIP64, 5);
        zip_file_add_u8(&zip, "a%2F.npy", ZIP_FILE_DEFLATED, 200);
        zip_file_end(&zip, "", wide);
        for (size_t length = 4; length < zip.bytes.length; length++)
            assert_int_equal(bytes_open(&zip.bytes, length, &model, NULL), ZT_INVALID);
        for (size_t bit = 32; bit < zip.bytes.length * 8; bit++) {
            zip.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            bytes_open(&zip.bytes, zip.bytes.length, &model, NULL);
            for (uint32_t i = 0; model != NULL && i < model->component_count; i++) {
                assert_true(model->components[i].offset <= zip.directory_at);
                assert_true(model->components[i].length <=
                            zip.directory_at - model->components[i].offset);
            }
            zt_model_free(model);
            model = NULL;
            zip.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        zip_file_free(&zip);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_lists_entries_of_every_kind),
        cmocka_unit_test(open_takes_empty_archives_comments_and_zip64),
        cmocka_unit_test(open_decodes_names_that_writers_encode),
        cmocka_unit_test(open_refuses_names_that_cannot_be),
        cmocka_unit_test(open_refuses_names_that_occur_twice),
        cmocka_unit_test(open_calls_what_it_does_not_read_unsupported),
        cmocka_unit_test(open_names_the_array_it_refuses),
        cmocka_unit_test(open_refuses_directories_with_wrong_numbers),
        cmocka_unit_test(open_refuses_counts_that_are_not_the_directory_s),
        cmocka_unit_test(open_refuses_files_without_end_record),
        cmocka_unit_test(open_refuses_zip64_with_wrong_numbers),
        cmocka_unit_test(open_refuses_local_headers_that_differ),
        cmocka_unit_test(open_refuses_entries_of_other_sizes),
        cmocka_unit_test(open_refuses_streams_that_do_not_inflate),
        cmocka_unit_test(open_refuses_entries_that_overlap),
        cmocka_unit_test(check_finds_every_flipped_bit_of_an_entry),
        cmocka_unit_test(crc32_is_a_digest_in_npz_only),
        cmocka_unit_test(open_survives_prefixes_and_flipped_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
