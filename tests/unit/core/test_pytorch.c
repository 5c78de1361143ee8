/* PyTorch: what the readers open and refuse, on pickles made here. */
#include "tests.h"

#include <string.h>

#include "pytorch_pieces.h"
#include "zt/model.h"

static enum zt_status open_pickle(enum zip_file_kind kind, const char *pickle, size_t length,
                                  struct zt_model **out_model, struct zt_error *error)
{
    const struct made made = {pickle, length, 16, "3\n", NULL, false, kind};
    struct zip_file zip = {0};
    enum zt_status status;

    make(&zip, &made);
    status = bytes_open(&zip.bytes, zip.bytes.length, out_model, error);
    zip_file_free(&zip);
    return status;
}

static void assert_refused(const char *pickle, size_t length, const char *rule)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    assert_int_equal(open_pickle(ZIP_FILE_STORED, pickle, length, &model, &error), ZT_INVALID);
    assert_string_equal(error.rule, rule);
    assert_true(error.offset != ZT_NO_OFFSET);
}

#define ASSERT_REFUSED(pickle, rule) assert_refused("" pickle, sizeof(pickle) - 1, "pt §" rule)

TEST(tensors_that_lie_in_order_are_ranges_of_the_file)
{
    static const char pickle[] =
        "\x80\x02}(" TEXT("\x01", "w") PLAIN TEXT("\x01", "t") TENSOR("\0", COLUMNS) "u.";
    struct zt_model *model = NULL;
    const struct zt_component *component;

    assert_ok(open_pickle(ZIP_FILE_STORED, pickle, sizeof(pickle) - 1, &model, NULL));
    assert_int_equal(model->format, ZT_FORMAT_PYTORCH);
    assert_int_equal(model->object_count, 2);
    component = zt_object_components(model, &model->objects[1]);
    assert_int_equal(component->encoding, ZT_ENCODING_RAW);
    assert_int_equal(component->length, 16);
    assert_null(component->arrangement);
    assert_int_equal(component->digest_length, 14);
    component = zt_object_components(model, &model->objects[0]);
    assert_int_equal(component->encoding, ZT_ENCODING_STRIDED);
    assert_int_equal(component->arrangement->strides[1], 2);
    assert_int_equal(component->decoded_length, 16);
    zt_model_free(model);
}

TEST(deflated_entries_are_read)
{
    static const char pickle[] = "\x80\x02" PLAIN ".";
    struct zt_model *model = NULL;

    assert_ok(open_pickle(ZIP_FILE_DEFLATED, pickle, sizeof(pickle) - 1, &model, NULL));
    assert_true(zt_text_is(zt_object_name(&model->objects[0]), "data"));
    assert_int_equal(zt_object_components(model, &model->objects[0])->encoding,
                     ZT_ENCODING_DEFLATE);
    zt_model_free(model);
}

TEST(open_refuses_tensors_past_their_storage)
{
    ASSERT_REFUSED("\x80\x02" TENSOR("\x01", ROWS) ".", "Tensor Bounds");
    ASSERT_REFUSED("\x80\x02" TENSOR("\0", "K\x03K\x01\x86") ".", "Tensor Bounds");
    ASSERT_REFUSED("\x80\x02" TENSOR("\0", "K\x02\x85") ".", "Tensor Shape");
    ASSERT_REFUSED("\x80\x02" STORAGE("torch\nFloatStorage", "\x05") ".", "Storage Size");
    ASSERT_REFUSED("\x80\x02"
                   "NQ.",
                   "Storage Id");
}

TEST(open_refuses_names_that_cannot_be)
{
    ASSERT_REFUSED("\x80\x02}" TEXT("\0", "") PLAIN "s.", "Names Name");
    ASSERT_REFUSED("\x80\x02}" TEXT("\x01", "\xff") PLAIN "s.", "Names Name");
    ASSERT_REFUSED("\x80\x02}\x88" PLAIN "s.", "Names Name");
    ASSERT_REFUSED("\x80\x02}" PLAIN "Ns.", "Names Name");
    ASSERT_REFUSED("\x80\x02}" TEXT("\x01", "a") "}\x88" PLAIN "ss.", "Names Name");
    ASSERT_REFUSED("\x80\x04\x8f(" PLAIN "\x90.", "Names Name");
    ASSERT_REFUSED("\x80\x02}(K\x01" PLAIN TEXT("\x01", "1") PLAIN "u.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02]q\0h\0a.", "Tree Size");
    ASSERT_REFUSED("\x80\x02" PLAIN ".N", "Pickle Trailing");
}

TEST(open_refuses_persistent_ids_that_are_no_storages)
{
    ASSERT_REFUSED("\x80\x02(" TEXT("\x07", "storage") "ctorch\nFloatStorage\n" TEXT("\x01", "0")
                       TEXT("\x04", "meta") "K\x04tQ.",
                   "Storage Id");
    ASSERT_REFUSED("\x80\x02(" TEXT("\x07", "storage") "ctorch\nFloatStorage\n" TEXT("\x01", "0")
                       TEXT("\x03", "cpu") "K\x04NtQ.",
                   "Storage Id");
    ASSERT_REFUSED("\x80\x02(" TEXT("\x07", "storage") "ctorch\nfloat32\n" TEXT("\x01", "0")
                       TEXT("\x03", "cpu") "K\x04tQ.",
                   "Storage Id");
}

/* What ends a call of _rebuild_tensor_v2 with metadata. */
#define WITH(metadata) HOOKS metadata "tR"
#define FLOATS         REBUILD STORAGE("torch\nFloatStorage", "\x04") "K\0K\x02\x85K\x01\x85"
#define COMPLEX        REBUILD STORAGE("torch\nComplexFloatStorage", "\x02") "K\0K\x02\x85K\x01\x85"
#define LONGS(shape, strides) \
    REBUILD STORAGE("torch\nLongStorage", "\x02") "K\0" shape strides HOOKS "tR"
#define QUANTIZED(quantizer)                      \
    "ctorch._utils\n_rebuild_qtensor\n(" STORAGE( \
        "torch\nQUInt8Storage", "\x10") "K\0"     \
                                        "K\x02K\x02\x86" ROWS quantizer HOOKS "tR"
#define CSR(rows, columns, shape)                                                       \
    "ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n" TEXT( \
        "\x10", "torch.sparse_csr") "\x85R(" rows columns FLOATS HOOKS "tR" shape "ttR"

TEST(open_refuses_tensors_that_do_not_fit_together)
{
    ASSERT_REFUSED("\x80\x02" COMPLEX WITH("}" TEXT("\x04", "conj") "\x89s") ".",
                   "Tensor Metadata");
    ASSERT_REFUSED("\x80\x02" FLOATS WITH("}" TEXT("\x04", "conj") "\x88s") ".", "Tensor Metadata");
    ASSERT_REFUSED("\x80\x02" FLOATS WITH("}" TEXT("\x03", "odd") "\x88s") ".", "Tensor Metadata");
    ASSERT_REFUSED("\x80\x02"
                   "ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" PLAIN
                   "ctorch\nfloat16\n" TEXT("\x03", "xla") "\x89tR.",
                   "Tensor Dtype");
    ASSERT_REFUSED("\x80\x02" QUANTIZED("(ctorch\nper_channel_affine\n" LONGS(
                       "K\x01\x85", "K\x01\x85") LONGS("K\x01\x85", "K\x01\x85") "K\0t") ".",
                   "Tensor Quantizer");
    ASSERT_REFUSED("\x80\x02" CSR(LONGS("K\x02\x85", "K\x01\x85"), LONGS("K\x02\x85", "K\x01\x85"),
                                  "K\x02K\x02\x86") ".",
                   "Tensor Sparse");
}

/* Python keeps the last value of a key: a tensor that it drops is not shown. */
TEST(open_refuses_a_key_that_occurs_twice)
{
    ASSERT_REFUSED("\x80\x02}(" A PLAIN A "Nu.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02}" A "Ns" A PLAIN "s.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02}(" A "}" TEXT("\x01", "b") PLAIN "s" A "}" TEXT("\x01", "c") PLAIN
                   "su.",
                   "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02}(K\x01" PLAIN "J\x01\0\0\0Nu.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02}(K\x01" PLAIN "\x88Nu.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02}(K\x01" PLAIN "G\x3f\xf0\0\0\0\0\0\0Nu.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02" ORDERED "}" A PLAIN "s\x85R" A "Ns.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02" ORDERED "](](" A PLAIN "e](" A "Nee\x85R.", "Names DuplicateName");
    ASSERT_REFUSED("\x80\x02" ORDERED "](](" A PLAIN "ee\x85R" A "Ns.", "Names DuplicateName");
}

TEST(keys_that_python_tells_apart_are_different)
{
    static const char pickle[] =
        "\x80\x02}(" A PLAIN
        "K\x01N" TEXT("\x01", "1") "NJ\xff\xff\xff\xffNNN\x88\x85NG\x3f\xf8\0\0\0\0\0\0N\x89Nu.";
    struct zt_model *model = NULL;

    assert_ok(open_pickle(ZIP_FILE_STORED, pickle, sizeof(pickle) - 1, &model, NULL));
    assert_int_equal(model->object_count, 1);
    zt_model_free(model);
}

/* The first pickle is the magic number, in the protocol that the caller of torch.save chose. */
TEST(stacked_pickles_are_read_in_every_protocol)
{
    static const char magic[] = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    static const char rest[] = "\x80\x02M\xe9\x03.\x80\x02}.\x80\x02}.\x80\x02].";
    static const char frame[] = "\x95\x0d\0\0\0\0\0\0";

    for (uint8_t protocol = 2; protocol <= 5; protocol++) {
        const size_t frame_bytes = protocol < 4 ? 0 : sizeof(frame);
        uint8_t file[128] = {0x80, protocol};
        size_t length = 2;
        const struct bytes bytes = {.at = file};
        struct zt_model *model = NULL;

        memcpy(file + length, frame, frame_bytes);
        length += frame_bytes;
        memcpy(file + length, magic, sizeof(magic) - 1);
        length += sizeof(magic) - 1;
        memcpy(file + length, rest, sizeof(rest) - 1);
        length += sizeof(rest) - 1;
        assert_ok(bytes_open(&bytes, length, &model, NULL));
        assert_int_equal(model->format, ZT_FORMAT_PYTORCH);
        zt_model_free(model);
    }
}

#define LEGACY_VIEW(view)                                                         \
    "\x80\x02(" TEXT("\x07", "storage") "ctorch\nByteStorage\n" TEXT("\x01", "0") \
        TEXT("\x03", "cpu") "K\x04" view "tQ."
#define LEGACY_KEYS "\x80\x02]" TEXT("\x01", "0") "a."
#define LEGACY_DATA "\x04\0\0\0\0\0\0\0abcd"

static void assert_legacy(const char *file, size_t length, const char *rule)
{
    const struct bytes bytes = {(uint8_t *)(uintptr_t)file, length};
    struct zt_model *model = NULL;
    struct zt_error error;
    const enum zt_status status = bytes_open(&bytes, length, &model, &error);

    assert_int_equal(status, rule == NULL ? ZT_OK : ZT_INVALID);
    if (rule != NULL)
        assert_string_equal(error.rule, rule);
    zt_model_free(model);
}

#define ASSERT_LEGACY(file, rule) assert_legacy(file, sizeof(file) - 1, rule)

TEST(stacked_pickles_and_their_storages_agree)
{
    ASSERT_LEGACY(LEGACY_HEAD LEGACY_VIEW("N") LEGACY_KEYS LEGACY_DATA, NULL);
    ASSERT_LEGACY(LEGACY_HEAD LEGACY_VIEW("(NK\x01K\x03t") LEGACY_KEYS LEGACY_DATA,
                  "pt §Storage Id");
    ASSERT_LEGACY(LEGACY_HEAD LEGACY_VIEW("(" TEXT("\x01", "v") "K\x01K\x04t")
                      LEGACY_KEYS LEGACY_DATA,
                  "pt §Storage Id");
    ASSERT_LEGACY(LEGACY_HEAD LEGACY_VIEW("N") LEGACY_KEYS LEGACY_DATA "e", "pt §Legacy Trailing");
    ASSERT_LEGACY(LEGACY_HEAD LEGACY_VIEW("N") LEGACY_KEYS "\x03\0\0\0\0\0\0\0abcd",
                  "pt §Storage Size");
    ASSERT_LEGACY(LEGACY_HEAD LEGACY_VIEW("N") "\x80\x02].", "pt §Storage Missing");
}
