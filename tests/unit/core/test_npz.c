/* NPZ archives: directory, entries, names and digests. */
#include "tests.h"

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

#define BYTES(text)                                    \
    {                                                  \
        (uint8_t *)(uintptr_t)(text), sizeof(text) - 1 \
    }

static void make(struct zip_file *zip, enum zip_file_kind kind)
{
    zip_file_add_u8(zip, "b.npy", kind, 5);
    zip_file_add_u8(zip, "a.npy", kind, 200);
    zip_file_end(zip, "", false);
}

static void assert_verified(const struct zip_file *zip, const struct zt_model *model)
{
    struct zt_source *source = memory_source(zip->bytes.at, zip->bytes.length);

    for (uint32_t i = 0; i < model->component_count; i++) {
        struct zt_component_check check;

        assert_ok(zt_component_check(model, &model->components[i], source, NULL, &check, NULL));
        assert_int_equal(check.verdict, ZT_VERDICT_VERIFIED);
        assert_string_equal(check.expected, check.actual);
        assert_int_equal(check.hashed_bytes, model->components[i].length);
    }
    zt_source_close(source);
}

TEST(open_lists_entries_of_every_kind)
{
    for (enum zip_file_kind kind = ZIP_FILE_STORED; kind <= ZIP_FILE_DESCRIPTOR; kind++) {
        struct zip_file zip = {0};
        struct zt_model *model = NULL;
        const struct zt_object *object;
        const struct zt_component *component;
        bool deflated;

        make(&zip, kind);
        model = bytes_model(&zip.bytes);
        assert_int_equal(model->format, ZT_FORMAT_NPZ);
        assert_int_equal(model->object_count, 2);
        assert_int_equal(model->manifest_offset, zip.directory_at);
        object = zt_model_find(model, zt_text_from("a"));
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

TEST(open_takes_empty_archives_comments_and_zip64)
{
    struct bytes notes = {NULL, 0};
    struct zip_file zip = {0};
    struct zt_model *model = NULL;

    zip_file_end(&zip, "", false);
    model = bytes_model(&zip.bytes);
    assert_int_equal(model->object_count, 0);
    zt_model_free(model);
    zip_file_free(&zip);
    bytes_append(&notes, "notes", 5);
    for (unsigned wide = 0; wide < 2; wide++) {
        zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 5);
        zip_file_add(&zip, "notes.txt", ZIP_FILE_STORED, &notes);
        zip_file_add(&zip, "folder/", ZIP_FILE_STORED, &(struct bytes){NULL, 0});
        zip_file_end(&zip, "a comment with PK\5\6 and more behind it than the record", wide);
        model = bytes_model(&zip.bytes);
        assert_int_equal(model->object_count, 1);
        zt_model_free(model);
        zip_file_free(&zip);
    }
    bytes_free(&notes);
}

TEST(open_decodes_names_that_writers_encode)
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

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        zip_file_add_u8(&zip, names[i][0], ZIP_FILE_STORED, 1);
    zip_file_end(&zip, "", false);
    model = bytes_model(&zip.bytes);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_non_null(zt_model_find(model, zt_text_from(names[i][1])));
    zt_model_free(model);
    zip_file_free(&zip);
}

TEST(open_reads_arrays_of_any_name)
{
    static const struct zt_text names[] = {{"", 0}, {"a\0", 2}, {"bare", 4}, {"x.txt", 5}};
    struct zip_file zip = {0};
    struct zt_model *model = NULL;

    zip_file_add_u8(&zip, ".npy", ZIP_FILE_STORED, 1);
    zip_file_add_u8(&zip, "a%00.npy", ZIP_FILE_STORED, 1);
    zip_file_add_u8(&zip, "bare", ZIP_FILE_DEFLATED, 1);
    zip_file_add_u8(&zip, "x.txt", ZIP_FILE_STORED, 1);
    zip_file_add_u8(&zip, "b\xFF.npy", ZIP_FILE_STORED, 1);
    zip_file_end(&zip, "", false);
    model = bytes_model(&zip.bytes);
    assert_int_equal(model->object_count, 4);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_non_null(zt_model_find(model, names[i]));
    assert_json(model->attributes,
                "{\"unread\":{\"b\\\\xff.npy\":\"the name of the array is not UTF-8\"}}");
    zt_model_free(model);
    zip_file_free(&zip);
}

TEST(open_lists_members_that_it_does_not_read)
{
    static const struct {
        const char *name;
        struct bytes content;
    } members[] = {{"__MACOSX/._a.npy", BYTES("hello")},
                   {"notes.txt", BYTES("hello")},
                   {"notes.txt", BYTES("hello")},
                   {"object.npy", BYTES("\x80\4N.")},
                   {"empty.npy", BYTES("")}};
    struct bytes strings = {NULL, 0};
    struct zip_file zip = {0};
    struct zt_model *model;

    npy_append(&strings, "{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }",
               "a\0\0\0b\0\0\0", 8);
    zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 5);
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        zip_file_add(&zip, members[i].name, i == 1 ? ZIP_FILE_DEFLATED : ZIP_FILE_STORED,
                     &members[i].content);
    zip_file_add(&zip, "names.npy", ZIP_FILE_STORED, &strings);
    zip_file_end(&zip, "", false);
    model = bytes_model(&zip.bytes);
    assert_int_equal(model->object_count, 1);
    assert_json(model->attributes,
                "{\"unread\":{\"__MACOSX/._a.npy\":\"it is not a NumPy array\","
                "\"empty.npy\":\"it is empty\",\"names.npy\":\"the dtype <U2 is not supported\","
                "\"notes.txt\":\"it is not a NumPy array\","
                "\"object.npy\":\"it is not a NumPy array\"}}");
    zt_model_free(model);
    zip_file_free(&zip);
    bytes_free(&strings);
}

TEST(open_refuses_names_that_occur_twice)
{
    struct zip_file zip = {0};
    struct zt_model *model;
    struct zt_error error;

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

TEST(open_calls_what_it_does_not_read_unsupported)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        zip_file_add_u8(&zip, "a.npy", ZIP_FILE_STORED, 200);
        zip_file_end(&zip, "", false);
        bytes_put_le(zip.bytes.at + zip.record_at[0] + cases[i].at, cases[i].value, cases[i].width);
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
}

TEST(open_names_the_archives_of_other_programs)
{
    static const struct {
        const char *member;
        const char *message;
    } cases[] = {
        {"a.txt", "ZIP archive without"},
        {"model/archive_format", "torch.export"},
        {"serialized_exported_program.json", "torch.export"},
        {"model.weights.h5", "Keras"},
    };
    struct bytes text = {NULL, 0};

    bytes_append(&text, "pt2", 3);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct zip_file zip = {0};

        zip_file_add(&zip, cases[i].member, ZIP_FILE_STORED, &text);
        zip_file_end(&zip, "", false);
        bytes_assert_unsupported(&zip.bytes, cases[i].message);
        zip_file_free(&zip);
    }
    bytes_free(&text);
}

TEST(open_names_the_array_it_refuses)
{
    struct bytes array = {NULL, 0};
    struct zip_file zip = {0};
    struct zt_model *model = NULL;
    struct zt_error error;

    npy_append(&array, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "x", 1);
    zip_file_add(&zip, "objects.npy", ZIP_FILE_DEFLATED, &array);
    zip_file_end(&zip, "", false);
    assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, &error), ZT_UNSUPPORTED);
    assert_string_equal(error.object, "objects");
    bytes_free(&array);
    zip_file_free(&zip);
}

/* One number is changed; the failure is at the record, or at the end record. */
TEST(open_refuses_directories_with_wrong_numbers)
{
    static const struct {
        bool in_end;
        unsigned at;
        uint32_t value;
        const char *rule;
    } cases[] = {
        {true, 16, 0, "zip §Directory Bounds"},
        {true, 12, 1, "zip §Directory Bounds"},
        {true, 16, 0xFFFFFFF0, "zip §Directory Bounds"},
        {false, 0, 0, "zip §Directory Entry"},
        {false, RECORD_NAME, 0xFFFF, "zip §Directory Entry"},
        {false, RECORD_LENGTH, UINT32_MAX, "zip §Directory Entry"},
        {false, RECORD_OFFSET, 0xFFFFFFF0, "zip §Entry Bounds"},
        {false, RECORD_STORED, 0x10000, "zip §Entry Bounds"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct zip_file zip = {0};
        size_t at;

        make(&zip, ZIP_FILE_STORED);
        at = cases[i].in_end ? zip.end_at : zip.record_at[0];
        bytes_put_le(zip.bytes.at + at + cases[i].at, cases[i].value,
                     cases[i].at == RECORD_NAME ? 2 : 4);
        bytes_assert_refused(&zip.bytes, cases[i].rule, at);
        zip_file_free(&zip);
    }
}

TEST(open_refuses_counts_that_are_not_the_directory_s)
{
    struct zip_file zip = {0};
    uint8_t *counts;

    make(&zip, ZIP_FILE_STORED);
    counts = zip.bytes.at + zip.end_at + 8;
    memset(counts, 0, 4);
    bytes_assert_refused(&zip.bytes, "zip §Directory EntryCount", zip.record_at[0]);
    counts[0] = counts[2] = 1;
    bytes_assert_refused(&zip.bytes, "zip §Directory EntryCount", zip.record_at[1]);
    counts[1] = counts[3] = 0xff;
    bytes_assert_refused(&zip.bytes, "zip §Directory EntryCount", zip.end_at);
    zip_file_free(&zip);
}

TEST(open_refuses_files_without_end_record)
{
    struct zip_file zip = {0};

    make(&zip, ZIP_FILE_STORED);
    bytes_append(&zip.bytes, "x", 1);
    bytes_assert_refused(&zip.bytes, "zip §Directory EndRecord", zip.bytes.length - 22);
    zip.bytes.length = 21;
    bytes_assert_refused(&zip.bytes, "zip §Directory EndRecord", 0);
    zip_file_free(&zip);
}

TEST(open_refuses_zip64_with_wrong_numbers)
{
    struct zip_file zip = {0};
    uint8_t *bytes;

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

TEST(open_refuses_local_headers_that_differ)
{
    static const struct {
        unsigned at, width;
        uint64_t value;
    } cases[] = {{0, 4, 0},
                 {LOCAL_FLAGS, 2, 1},
                 {LOCAL_FLAGS, 2, 8},
                 {LOCAL_METHOD, 2, 8},
                 {LOCAL_CRC, 4, 0},
                 {LOCAL_STORED, 4, 0},
                 {LOCAL_LENGTH, 4, 0},
                 {LOCAL_NAME, 2, 4},
                 {LOCAL_TEXT, 1, 'x'},
                 {LOCAL_LENGTH, 4, UINT32_MAX}};

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

TEST(open_refuses_entries_of_other_sizes)
{
    struct zip_file zip = {0};

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

TEST(open_refuses_streams_that_do_not_inflate)
{
    struct zip_file zip = {0};

    make(&zip, ZIP_FILE_DEFLATED);
    zip.bytes.at[zip.data_at[1]] = 0x07;
    bytes_assert_refused(&zip.bytes, "zip §Deflate Stream", zip.data_at[1]);
    zip_file_free(&zip);
}

TEST(open_refuses_entries_that_overlap)
{
    struct bytes array = {NULL, 0};
    struct zip_file inner = {0};
    struct zip_file zip = {0};
    char dict[96];
    size_t header;
    size_t inner_at;

    /* The data of the first array are an archive, whose entry is in the directory too. */

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

TEST(check_finds_every_flipped_bit_of_an_entry)
{
    for (enum zip_file_kind kind = ZIP_FILE_STORED; kind <= ZIP_FILE_DEFLATED; kind++) {
        struct zip_file zip = {0};
        struct zt_model *model = NULL;
        struct zt_source *source;

        make(&zip, kind);
        model = bytes_model(&zip.bytes);
        source = memory_source(zip.bytes.at, zip.bytes.length);
        for (size_t bit = zip.data_at[0] * 8; bit < (zip.data_at[0] + zip.data_length[0]) * 8;
             bit++) {
            struct zt_component_check check;

            zip.bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_ok(zt_component_check(model, &model->components[0], source, NULL, &check, NULL));
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

TEST(crc32_is_a_digest_in_npz_only)
{
    struct zt_component component = {.digest = "crc32:cbf43926", .digest_length = 14};
    struct zt_model model = {.format = ZT_FORMAT_NPZ};
    struct zt_digest digest;

    assert_ok(zt_component_digest(&model, &component, &digest, NULL));
    assert_int_equal(digest.algorithm, ZT_DIGEST_CRC32);
    model.format = ZT_FORMAT_ZT1;
    assert_int_equal(zt_component_digest(&model, &component, &digest, NULL), ZT_UNSUPPORTED);
}

TEST(open_survives_prefixes_and_flipped_bits)
{
    for (unsigned wide = 0; wide < 2; wide++) {
        struct zip_file zip = {0};

        zip_file_add_u8(&zip, "b.npy", ZIP_FILE_ZIP64, 5);
        zip_file_add_u8(&zip, "a%2F.npy", ZIP_FILE_DEFLATED, 200);
        zip_file_end(&zip, "", wide);
        bytes_assert_survive(&zip.bytes, 4, zip.bytes.length);
        zip_file_free(&zip);
    }
}
