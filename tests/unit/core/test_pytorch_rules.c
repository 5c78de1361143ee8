/* PyTorch: the rules of archives, stacked pickles, storages and names, each at its offset. */
#include "pytorch_pieces.h"

/* Fields of a record of the directory; those before the name are 2 less in a local header. */
#define RECORD_CRC      16
#define RECORD_STORED   20
#define RECORD_LENGTH   24
#define RECORD_OFFSET   42
#define LOCAL_EXTRA     28
#define END_DISK_COUNT  8
#define END_ENTRY_COUNT 10

#define ASSERT_AT(before, rest, rule)                                  \
    do {                                                               \
        static const struct made made_ = MADE("\x80\x02" before rest); \
        assert_pickle(&made_, "pt §" rule, sizeof("" before) + 1);     \
    } while (0)

/* --- archives --- */

/* Changes a field of a record and of its local header. */
static void set_both(struct zip_file *zip, unsigned entry, unsigned field, uint64_t value)
{
    bytes_put_le(zip->bytes.at + zip->record_at[entry] + field, value, 4);
    bytes_put_le(zip->bytes.at + zip->local_at[entry] + field - 2, value, 4);
}

TEST(entries_end_before_the_directory)
{
    struct zip_file zip = {0};

    make(&zip, &good);
    bytes_put_le(zip.bytes.at + zip.local_at[VERSION] + LOCAL_EXTRA, 0xffff, 2);
    bytes_assert_refused(&zip.bytes, "zip §Entry Bounds", zip.local_at[VERSION]);
    bytes_put_le(zip.bytes.at + zip.local_at[VERSION] + LOCAL_EXTRA, 0, 2);
    set_both(&zip, VERSION, RECORD_LENGTH, 3);
    set_both(&zip, VERSION, RECORD_STORED, 3);
    bytes_assert_refused(&zip.bytes, "zip §Entry Bounds", zip.record_at[VERSION]);
    set_both(&zip, VERSION, RECORD_STORED, 2);
    bytes_assert_refused(&zip.bytes, "zip §Entry Size", zip.record_at[VERSION]);
    set_both(&zip, VERSION, RECORD_LENGTH, 2);
    bytes_put_le(zip.bytes.at + zip.end_at + END_DISK_COUNT, 2, 2);
    bytes_put_le(zip.bytes.at + zip.end_at + END_ENTRY_COUNT, 2, 2);
    bytes_assert_refused(&zip.bytes, "zip §Directory EntryCount", zip.record_at[VERSION]);
    zip_file_free(&zip);
}

/* The data of one entry holds the local header and data of another. */
TEST(entries_do_not_overlap)
{
    struct zip_file inner = {0};
    struct zip_file zip = {0};
    size_t inner_at;

    pytorch_entry(&inner, "a/version", ZIP_FILE_STORED, "3\n", 2);
    pytorch_entry(&zip, "a/data.pkl", ZIP_FILE_STORED, good.pickle, good.pickle_length);
    pytorch_entry(&zip, "a/x", ZIP_FILE_STORED, inner.bytes.at, inner.bytes.length);
    pytorch_entry(&zip, "a/version", ZIP_FILE_STORED, "3\n", 2);
    zip_file_end(&zip, "", false);
    inner_at = zip.data_at[1];
    bytes_put_le(zip.bytes.at + zip.record_at[2] + RECORD_OFFSET, inner_at, 4);
    bytes_assert_refused(&zip.bytes, "zip §Entry Overlap", inner_at);
    zip_file_free(&inner);
    zip_file_free(&zip);
}

TEST(archives_are_one_folder_with_data_pkl_in_it)
{
    static const struct {
        const char *first;
        const char *rule;
        unsigned record;
    } cases[] = {{"version", "pt §Archive Root", 0},
                 {"/version", "pt §Archive Root", 0},
                 {"b/version", "pt §Archive Root", 1},
                 {"a/version", "pt §Archive DuplicateEntry", 3}};
    struct zip_file zip = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pytorch_entry(&zip, cases[i].first, ZIP_FILE_STORED, "3\n", 2);
        make(&zip, &good);
        bytes_assert_refused(&zip.bytes, cases[i].rule, zip.record_at[cases[i].record]);
        zip_file_free(&zip);
    }
    pytorch_entry(&zip, "a/b/data.pkl", ZIP_FILE_STORED, good.pickle, good.pickle_length);
    pytorch_entry(&zip, "a/version", ZIP_FILE_STORED, "3\n", 2);
    zip_file_end(&zip, "", false);
    bytes_assert_refused(&zip.bytes, "pt §Archive Root", zip.directory_at);
    zip_file_free(&zip);
}

static void assert_small(const char *version, const char *byteorder, const char *rule)
{
    struct made made = good;
    struct zip_file zip = {0};

    made.version = version;
    made.byteorder = byteorder;
    make(&zip, &made);
    bytes_assert_refused(&zip.bytes, rule,
                         version == NULL ? zip.directory_at
                                         : zip.record_at[VERSION + (byteorder != NULL)]);
    zip_file_free(&zip);
}

TEST(version_and_byteorder_are_short_texts)
{
    static const char *const versions[] = {"0",     "",   "x",  "3x",
                                           "3\n\n", " 3", "11", "18446744073709551619"};
    static const char *const orders[] = {"", "Little", "little\n", "middle"};
    static const char long_text[] =
        "1111111111111111111111111111111111111111111111111111111111111111\n";

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        assert_small(versions[i], NULL, "pt §Archive Version");
    assert_small(NULL, NULL, "pt §Archive Version");
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        assert_small("3", orders[i], "pt §Archive Byteorder");
    assert_small(long_text, NULL, "pt §Archive EntrySize");
    assert_small("3", long_text, "pt §Archive EntrySize");
}

/* Of two entries that end in a NUL. */
TEST(small_texts_have_no_nul)
{
    struct zip_file zip = {0};

    pytorch_entry(&zip, "a/data.pkl", ZIP_FILE_STORED, good.pickle, good.pickle_length);
    pytorch_entry(&zip, "a/version", ZIP_FILE_STORED, "3\0", 2);
    zip_file_end(&zip, "", false);
    bytes_assert_refused(&zip.bytes, "pt §Archive Version", zip.record_at[1]);
    zip_file_free(&zip);
}

TEST(crcs_of_0_are_none)
{
    struct zip_file zip = {0};
    struct zt_model *model = NULL;

    make(&zip, &good);
    set_both(&zip, PICKLE, RECORD_CRC, 1);
    bytes_assert_refused(&zip.bytes, "pt §Archive Crc", zip.record_at[PICKLE]);
    set_both(&zip, PICKLE, RECORD_CRC, 0);
    model = bytes_model(&zip.bytes);
    assert_int_equal(zt_object_components(model, &model->objects[0])->digest_length, 0);
    zt_model_free(model);
    zip_file_free(&zip);
}

TEST(deflated_entries_are_no_longer_than_they_can_be)
{
    struct made many =
        MADE("\x80\x02" STORAGE_OF("torch\nFloatStorage", "0", "J\x40\x42\x0f\0") ".");
    struct zip_file zip = {0};

    many.kind = ZIP_FILE_DEFLATED;
    make(&zip, &many);
    set_both(&zip, STORED, RECORD_LENGTH, 4000000);
    bytes_assert_refused(&zip.bytes, "zip §Deflate Ratio", zip.record_at[STORED]);
    set_both(&zip, PICKLE, RECORD_LENGTH, 4000000);
    bytes_assert_refused(&zip.bytes, "zip §Deflate Ratio", zip.record_at[PICKLE]);
    zip_file_free(&zip);
}

/* Where in the pickle is said by the message. */
TEST(faults_of_a_deflated_pickle_are_where_its_bytes_begin)
{
    struct made bad = MADE("\x80\x02]]]0.");

    bad.kind = ZIP_FILE_DEFLATED;
    assert_pickle(&bad, "pt §Pickle Opcode", 0);
}

/* --- storages and tensors --- */

static void assert_storage(size_t storage_length, const char *rule)
{
    struct made made = good;

    made.storage_length = storage_length;
    assert_pickle(&made, rule, sizeof("\x80\x02" REBUILD FLOAT_STORAGE) - 2);
}

static void assert_part_without_digest(const struct made *made, uint64_t length)
{
    struct zt_model *model = NULL;

    assert_opens(made, &model);
    assert_int_equal(zt_object_components(model, &model->objects[0])->length, length);
    assert_int_equal(zt_object_components(model, &model->objects[0])->digest_length, 0);
    zt_model_free(model);
}

TEST(storages_have_the_elements_that_the_pickle_says)
{
    struct made made = good;

    assert_storage(0, "pt §Storage Missing");
    assert_storage(20, "pt §Storage Size");
    assert_storage(15, "pt §Storage Size");
    /* A part of an element at the end is no element. */
    made.storage_length = 19;
    assert_part_without_digest(&made, 16);
}

TEST(a_part_of_an_entry_has_no_digest)
{
    static const struct made half =
        MADE("\x80\x02" REBUILD FLOAT_STORAGE "K\0K\x02\x85K\x01\x85" HOOKS "tR.");

    assert_part_without_digest(&half, 8);
}

/* 40 MB of one float: two of them are more than 64 MiB. */
#define EXPANDED REBUILD FLOAT_STORAGE "K\0J\x80\x96\x98\0\x85K\0\x85" HOOKS "tR"

TEST(expanded_tensors_are_counted_together)
{
    static const struct made one = MADE("\x80\x02]" EXPANDED "a.");
    static const struct made large =
        MADE("\x80\x02" REBUILD FLOAT_STORAGE "K\0J\0\0\0\x7f\x85K\0\x85" HOOKS "tR.");
    struct zt_model *model = NULL;

    assert_opens(&one, &model);
    zt_model_free(model);
    ASSERT_AT("](" EXPANDED REBUILD FLOAT_STORAGE "K\0J\x80\x96\x98\0\x85K\0\x85" HOOKS "t", "Re.",
              "Tensor Expanded");
    assert_pickle(&large, "pt §Tensor Expanded", large.pickle_length - 2);
}

/* --- names --- */

/* A list in a list, so often. */
static size_t nest(char *pickle, unsigned depth)
{
    memcpy(pickle, "\x80\x02", 2);
    memset(pickle + 2, ']', depth);
    memset(pickle + 2 + depth, 'a', depth - 1);
    pickle[2 * depth + 1] = '.';
    return 2 * depth + 2;
}

TEST(containers_are_nested_up_to_128)
{
    char pickle[300];
    struct made made = good;
    struct zt_model *model = NULL;

    made.pickle = pickle;
    made.pickle_length = nest(pickle, 128);
    assert_opens(&made, &model);
    zt_model_free(model);
    made.pickle_length = nest(pickle, 129);
    assert_pickle(&made, "pt §Tree Depth", 2 + 128);
}

/* A list of one tensor, so often, under a name of so many bytes. Returns the tensor's position. */
static size_t repeat(struct bytes *pickle, unsigned name_length, unsigned count)
{
    static const char tensor[] = PLAIN "q\0";
    size_t position;

    bytes_append(pickle, "\x80\x02}X", 4);
    for (unsigned i = 0; i < 4; i++)
        bytes_append(pickle, (uint8_t[]){(uint8_t)(name_length >> 8 * i)}, 1);
    for (unsigned i = 0; i < name_length; i++)
        bytes_append(pickle, "n", 1);
    bytes_append(pickle, "](", 2);
    bytes_append(pickle, tensor, sizeof(tensor) - 1);
    position = pickle->length - 3;
    for (unsigned i = 1; i < count; i++)
        bytes_append(pickle, "h\0", 2);
    bytes_append(pickle, "es.", 3);
    return position;
}

TEST(tensors_and_names_are_bounded_by_the_pickle)
{
    static const struct {
        unsigned name_length, count;
        bool is_refused;
    } cases[] = {{1, 100, false}, {1, 2000, true}, {1000, 60, false}, {1000, 110, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bytes pickle = {NULL, 0};
        struct made made = good;
        struct zt_model *model = NULL;
        const size_t position = repeat(&pickle, cases[i].name_length, cases[i].count);

        made.pickle = (const char *)pickle.at;
        made.pickle_length = pickle.length;
        if (cases[i].is_refused) {
            assert_pickle(&made, "pt §Tree Size", position);
        } else {
            assert_opens(&made, &model);
            zt_model_free(model);
        }
        bytes_free(&pickle);
    }
}

TEST(entries_of_dictionaries_are_pairs)
{
    ASSERT_AT(ORDERED "]", "Na\x85R.", "Pickle Call");
    ASSERT_AT(ORDERED "]", ")a\x85R.", "Pickle Call");
    ASSERT_AT(ORDERED "]N",
              "\x85"
              "a\x85R.",
              "Pickle Call");
    ASSERT_AT(ORDERED "]NNN",
              "\x87"
              "a\x85R.",
              "Pickle Call");
    ASSERT_AT(ORDERED "]",
              "]N\x86"
              "a\x85R.",
              "Names Name");
}

#define RECORD "c__torch__\nM\n)\x81"

/* A record that takes a map many times has more keys than there are values. */
TEST(maps_that_are_merged_again_and_again_are_refused)
{
    static const char many[] =
        "\x80\x02" RECORD "}q\0(K\x01NK\x02NK\x03NK\x04NK\x05NK\x06NK\x07NK\x08Nub"
        "h\0bh\0bh\0bh\0b"
        "h\0bh\0bh\0bh\0bh\0bh\0b.";
    /* An empty one that each next record takes twice. */
    struct bytes doubled = {NULL, 0};
    struct made made = {many, sizeof(many) - 1, 16, "3\n", NULL, true, ZIP_FILE_STORED};

    assert_pickle(&made, "pt §Names DuplicateName", sizeof("\x80\x02" RECORD) - 2);
    bytes_append(&doubled,
                 "\x80\x02("
                 "c__torch__\nM\nq\0)\x81q\1",
                 22);
    for (unsigned i = 0; i < 20; i++)
        bytes_append(&doubled, "h\0)\x81h\1bh\1bq\1", 12);
    bytes_append(&doubled, "t.", 2);
    made.pickle = (const char *)doubled.at;
    made.pickle_length = doubled.length;
    assert_pickle(&made, "pt §Tree Size", 25);
    bytes_free(&doubled);
}

/* --- stacked pickles --- */

#define BYTES(key, count) STORAGE_OF("torch\nByteStorage", key, "K" count "N")
#define KEYS(keys)        "\x80\x02](" keys "e."
#define COUNT             "\x04\0\0\0\0\0\0\0"
#define ZERO              TEXT("\x01", "0")
#define ONE               TEXT("\x01", "1")

static void assert_legacy(const char *file, size_t length, size_t offset, const char *rule)
{
    const struct bytes bytes = {(uint8_t *)(uintptr_t)file, length};

    bytes_assert_refused(&bytes, rule, offset);
}

#define ASSERT_LEGACY(before, rest, rule) \
    assert_legacy("" before rest, sizeof("" before rest) - 1, sizeof("" before) - 1, "pt §" rule)

TEST(stacked_pickles_have_a_head)
{
    ASSERT_LEGACY(LEGACY_MAGIC LEGACY_VERSION LEGACY_FACTS, "", "Pickle Truncated");
    ASSERT_LEGACY(LEGACY_MAGIC LEGACY_VERSION LEGACY_FACTS "\x80\x02", "\xff.", "Pickle Opcode");
    ASSERT_LEGACY(LEGACY_MAGIC "\x80\x02", "M\xea\x03." LEGACY_FACTS "\x80\x02N.\x80\x02].",
                  "Legacy Version");
    ASSERT_LEGACY(LEGACY_MAGIC LEGACY_VERSION "\x80\x02", "N.\x80\x02N.\x80\x02].",
                  "Legacy Header");
}

TEST(every_storage_has_one_key_and_one_size)
{
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02N.\x80\x02", "N.", "Legacy Keys");
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") ".\x80\x02](", "Ne.", "Legacy Keys");
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") ".\x80\x02](" ZERO, ONE "e.",
                  "Legacy Keys");
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") BYTES("0", "\x04") "\x86.",
                  KEYS(ZERO ZERO) COUNT "abcd" COUNT "abcd", "Legacy Keys");
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") BYTES("0", "\x04") "\x86.",
                  KEYS(ZERO ONE) COUNT "abcd" COUNT "abcd", "Legacy Keys");
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") "(" TEXT(
                      "\x07", "storage") "ctorch\nByteStorage\n" TEXT("\x01", "0")
                      TEXT("\x03", "cpu") "K\x03Nt",
                  "Q\x86." KEYS(ZERO) COUNT "abcd", "Storage Size");
    /* As many elements of another width. */
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") "(" TEXT(
                      "\x07", "storage") "ctorch\nHalfStorage\n" TEXT("\x01", "0")
                      TEXT("\x03", "cpu") "K\x04Nt",
                  "Q\x86." KEYS(ZERO) COUNT "abcd", "Storage Size");
}

TEST(stacked_storages_lie_within_the_file)
{
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") "." KEYS(ZERO), "\x04\0\0\0",
                  "Storage Bounds");
    ASSERT_LEGACY(LEGACY_HEAD "\x80\x02" BYTES("0", "\x04") "." KEYS(ZERO) COUNT, "abc",
                  "Storage Bounds");
}
