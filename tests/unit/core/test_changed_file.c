/* Files that change while they are read: a header is measured, or a seek table checked, in one pass
 * and read in a second one, which must not rely on the results of the first. */
#include <string.h>

#include "base/little_endian.h"
#include "handmade.h"
#include "tests.h"
#include "zip_file.h"
#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/model.h"

/* A file whose last reading finds other bytes. */
struct changing_file {
    struct zt_source source;
    struct bytes before;
    struct bytes after; /* of the same length */
    unsigned readings;
    unsigned last_reading; /* 0: they are only counted */
};

static uint64_t size_of(const struct zt_source *source)
{
    return ((const struct changing_file *)source)->before.length;
}

static enum zt_status read_at(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error)
{
    struct changing_file *file = (struct changing_file *)source;
    bool is_changed = ++file->readings == file->last_reading;

    (void)error;
    assert_true(offset <= file->before.length && length <= file->before.length - offset);
    memcpy(buffer, (is_changed ? file->after.at : file->before.at) + offset, length);
    return ZT_OK;
}

static const struct zt_source_ops ops = {.size = size_of, .read_at = read_at};

static void begin(struct changing_file *file, const struct bytes *bytes)
{
    *file = (struct changing_file){.source = {&ops}};
    bytes_append(&file->before, bytes->at, bytes->length);
    bytes_append(&file->after, bytes->at, bytes->length);
}

static void assert_refused(struct changing_file *file, const char *rule, uint64_t offset)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    zt_model_open(&file->source, &model, &error);
    zt_model_free(model);
    model = NULL;
    file->last_reading = file->readings;
    file->readings = 0;
    zt_error_clear(&error);
    zt_model_open(&file->source, &model, &error);
    assert_null(model);
    assert_int_equal(file->readings, file->last_reading);
    assert_failure(&error, ZT_INVALID, rule, offset);
    bytes_free(&file->before);
    bytes_free(&file->after);
}

/* Version 1.0 has a length of two bytes, 2.0 of four: the dictionary would begin past the end. */
TEST(open_refuses_an_npy_header_that_shrinks)
{
    struct changing_file file;
    struct bytes npy = {NULL, 0};

    bytes_append(&npy, "\x93NUMPY\1\0\1\0\n", 11);
    begin(&file, &npy);
    file.after.at[6] = 2;
    assert_refused(&file, "npy §Header HeaderBounds", 8);
    bytes_free(&npy);
}

/* --- snapshots of one string and one tensor --- */

#define OFFSETS_AT 40
#define RECORD_AT  57
#define DATA_TAG   89

static void append_words(struct bytes *bytes, const uint32_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes_append_u32(bytes, words[i]);
}

static struct bytes make_snapshot(void)
{
    /* Version, date, checksum, reserved, counts of metadata and tensors. */
    static const uint32_t header[] = {100, 0, 0, 0, 0, 0, 1};
    /* Rank and dtype, name, elements, offset, shape. */
    static const uint32_t record[] = {1, 0, 2, 0, 0, 0, 2, 0};
    static const uint32_t strings[] = {1, 0, 1};
    struct bytes bytes = {NULL, 0};

    bytes_append(&bytes, "MAG!", 4);
    append_words(&bytes, header, 7);
    bytes_append(&bytes, "SRP!", 4);
    append_words(&bytes, strings, 3);
    bytes_append(&bytes, "wMDT!DSC!", 9);
    assert_int_equal(bytes.length, RECORD_AT);
    append_words(&bytes, record, 8);
    assert_int_equal(bytes.length, DATA_TAG);
    bytes_append(&bytes, "BUF!\0\0\0\0\0\0\0\0", 12);
    return bytes;
}

/* The first reading gives the checksum that the second one's bytes have. */
static void seal(struct changing_file *file)
{
    zt_store_le32(file->before.at + 16, zt_crc32c(0, file->after.at + 20, DATA_TAG - 20));
}

TEST(open_reads_the_snapshot_unless_it_changes)
{
    struct bytes snapshot = make_snapshot();
    struct changing_file file;
    struct zt_model *model = NULL;

    begin(&file, &snapshot);
    seal(&file);
    assert_ok(zt_model_open(&file.source, &model, NULL));
    assert_int_equal(model->object_count, 1);
    zt_model_free(model);
    bytes_free(&file.before);
    bytes_free(&file.after);
    bytes_free(&snapshot);
}

TEST(open_refuses_a_snapshot_whose_strings_grow)
{
    struct bytes snapshot = make_snapshot();
    struct changing_file file;

    begin(&file, &snapshot);
    zt_store_le32(file.after.at + OFFSETS_AT + 4, 60000);
    seal(&file);
    assert_refused(&file, "mag §Snapshot Strings", OFFSETS_AT + 4);
    bytes_free(&snapshot);
}

TEST(open_refuses_a_snapshot_whose_records_grow)
{
    struct bytes snapshot = make_snapshot();
    struct changing_file file;

    begin(&file, &snapshot);
    file.after.at[RECORD_AT] = 63;
    seal(&file);
    assert_refused(&file, "mag §Snapshot Section", RECORD_AT);
    bytes_free(&snapshot);
}

/* --- seek tables --- */

#define FRAME_BYTES 16
#define LONG_FRAME  4096
/* The readings of a table: its footer, its head, its entries, and the entries again. */
#define LAST_TABLE_READING  4
#define LAST_ENTRY_FROM_END (9 + 8)

/* Two frames of FRAME_BYTES by the table, but the second one decodes to LONG_FRAME. */
static struct zt_component make_frames(struct bytes *bytes)
{
    static const uint8_t plain[LONG_FRAME] = {0};
    uint32_t lengths[2];

    bytes_append_zstd(bytes, plain, FRAME_BYTES, true);
    lengths[0] = (uint32_t)bytes->length;
    bytes_append_zstd(bytes, plain, LONG_FRAME, true);
    lengths[1] = (uint32_t)bytes->length - lengths[0];
    append_words(bytes, (const uint32_t[]){0x184D2A5E, 2 * 8 + 9}, 2);
    for (size_t i = 0; i < 2; i++)
        append_words(bytes, (const uint32_t[]){lengths[i], FRAME_BYTES}, 2);
    bytes_append_u32(bytes, 2);
    bytes_append(bytes, "", 1);
    bytes_append_u32(bytes, 0x8F92EAB1);
    return (struct zt_component){.encoding = ZT_ENCODING_ZSTD_SEEKABLE,
                                 .dtype = ZT_U8,
                                 .length = bytes->length,
                                 .decoded_length = (uint64_t)2 * FRAME_BYTES};
}

static enum zt_status read_a_part(const struct zt_component *component, struct zt_source *file,
                                  struct zt_error *error)
{
    struct zt_source *source = NULL;
    uint8_t part[4];
    enum zt_status status = zt_frames_source(component, file, &source, error);

    if (status == ZT_OK)
        status = zt_source_read_at(source, FRAME_BYTES + 1, part, sizeof(part), error);
    zt_source_close(source);
    return status;
}

static enum zt_status decode_all(const struct zt_component *component, struct zt_source *file,
                                 struct zt_error *error)
{
    struct zt_decoder *decoder = NULL;
    uint8_t bytes[LONG_FRAME];
    size_t length = 1;
    enum zt_status status = zt_decoder_open(component, file, &decoder, error);

    while (status == ZT_OK && length > 0)
        status = zt_decoder_read(decoder, bytes, sizeof(bytes), &length, error);
    zt_decoder_close(decoder);
    return status;
}

/* The second walk over the table finds other lengths for the second frame. */
static void assert_table_refused(uint32_t stored_change, uint32_t decoded_length, size_t from_end)
{
    struct bytes frames = {NULL, 0};
    struct zt_component component = make_frames(&frames);
    struct changing_file file;
    struct zt_error error;
    uint8_t *entry;

    begin(&file, &frames);
    entry = file.after.at + frames.length - LAST_ENTRY_FROM_END;
    zt_store_le32(entry, zt_load_le32(entry) + stored_change);
    zt_store_le32(entry + 4, decoded_length);
    file.last_reading = LAST_TABLE_READING;
    zt_error_clear(&error);
    assert_int_equal(read_a_part(&component, &file.source, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, "zt2 §6 SeekTable", frames.length - from_end);
    file.readings = 0;
    zt_error_clear(&error);
    assert_int_equal(decode_all(&component, &file.source, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, "zt2 §6 SeekTable", frames.length - from_end);
    bytes_free(&file.before);
    bytes_free(&file.after);
    bytes_free(&frames);
}

TEST(a_second_walk_refuses_a_frame_that_outgrows_the_first)
{
    assert_table_refused(0, LONG_FRAME, LAST_ENTRY_FROM_END);
}

TEST(a_second_walk_refuses_a_frame_that_runs_into_the_table)
{
    assert_table_refused(1, FRAME_BYTES, LAST_ENTRY_FROM_END);
}

/* Only the sums show that it is gone. */
TEST(a_second_walk_refuses_a_frame_that_is_gone)
{
    struct bytes frames = {NULL, 0};
    struct zt_component component = make_frames(&frames);
    struct changing_file file;
    struct zt_error error;

    begin(&file, &frames);
    zt_store_le32(file.after.at + frames.length - LAST_ENTRY_FROM_END + 4, 0);
    file.last_reading = LAST_TABLE_READING;
    zt_error_clear(&error);
    assert_int_equal(read_a_part(&component, &file.source, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, "zt2 §6 SeekTable", frames.length - (9 + 2 * 8 + 8));
    bytes_free(&file.before);
    bytes_free(&file.after);
    bytes_free(&frames);
}
