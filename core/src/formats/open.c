/* Opening a container: detecting its format by its first bytes, and the steps that all readers
 * share.
 *
 * The error for a known format that is not read names the format, so that nobody takes the file for
 * a damaged one. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/little_endian.h"
#include "formats/formats.h"
#include "model/extents.h"
#include "onnx/onnx.h"

/* --- one reader --- */

static enum zt_status check_model(const struct zt_reader *reader, void *state,
                                  struct zt_model *model, struct zt_error *error)
{
    enum zt_status status = reader->check != NULL ? reader->check(state, model, error) : ZT_OK;

    if (status == ZT_OK && reader->overlap_rule != NULL)
        status = zt_extents_check(model, reader->covers_manifest, reader->overlap_rule, error);
    return status;
}

enum zt_status zt_reader_open(const struct zt_reader *reader, void *state, struct zt_source *source,
                              struct zt_model **out_model, struct zt_error *error)
{
    struct zt_manifest_place place = {0, 0};
    struct zt_builder builder;
    struct zt_model *model = NULL;
    enum zt_status status = reader->locate(state, source, &place, error);

    if (status != ZT_OK)
        return status;
    assert(place.offset <= zt_source_size(source));
    assert(place.length <= zt_source_size(source) - place.offset);
    status = zt_builder_init(&builder, source, place.offset, place.length, error);
    if (status != ZT_OK)
        return status;
    builder.model->format = reader->format;
    builder.model->format_name = reader->name;
    status = reader->read(state, &builder, error);
    if (status == ZT_OK)
        status = zt_builder_finish(&builder, reader->duplicate_rule, &model, error);
    if (status != ZT_OK) {
        zt_builder_abandon(&builder);
        return status;
    }
    status = check_model(reader, state, model, error);
    if (status != ZT_OK) {
        zt_model_free(model);
        return status;
    }
    *out_model = model;
    return ZT_OK;
}

/* --- which format --- */

#define HEAD_BYTES      32
#define TAR_MAGIC_AT    257
#define TAR_MAGIC_BYTES 5
/* Of a file that is read from its end. */
#define END_BYTES ((uint64_t)1 << 20)

struct head {
    uint8_t bytes[HEAD_BYTES];
    size_t length;
    uint64_t file_size;
};

/* The magic number of PyTorch's stacked pickles, with STOP. */
#define PYTORCH_NUMBER       "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define PYTORCH_NUMBER_BYTES 13

static const struct {
    const char *magic;
    size_t length;
    enum zt_status (*open)(struct zt_source *source, struct zt_model **out_model,
                           struct zt_error *error);
    bool from_end;    /* it is read from its end */
    const char *name; /* of a format that is not read: open is NULL */
} formats[] = {
    {"\x89ZT2\r\n\x1a\n", 8, zt2_open, true, NULL},
    {"ZTEN0001", 8, zt01_open, true, NULL},
    {"ZTEN1000", 8, zt1_open, true, NULL},
    {"GGUF", 4, gguf_open, false, NULL},
    {"MAG!", 4, mag_open, false, NULL},
    {"MAG&", 4, NULL, false, ".mag as a stream (before magnetron 0.1.1)"},
    {"\x93NUMPY", 6, npy_open, false, NULL},
    {"PK\x03\x04", 4, npz_open, true, NULL},
    {"PK\x05\x06", 4, npz_open, true, NULL}, /* an empty archive */
    {"\x89HDF\r\n\x1a\n", 8, NULL, false, "HDF5"},
    {"\x80\x02" PYTORCH_NUMBER, 15, pytorch_legacy_open, false, NULL},
    {"\x80\x03" PYTORCH_NUMBER, 15, pytorch_legacy_open, false, NULL},
};

/* Brings the end of a file that is elsewhere in one piece: a footer, and most manifests. */
static void advise_end(struct zt_source *source)
{
    const uint64_t size = zt_source_size(source);
    const uint64_t length = size < END_BYTES ? size : END_BYTES;

    zt_source_advise(source, size - length, length);
}

/* A length of 8 bytes, then JSON. A length past the end of the file is left to the reader, which
 * reports a truncated file; 2^32 or more is not taken for a length. */
static bool is_safetensors(const struct head *head)
{
    uint64_t length;

    if (head->length < 9 || head->bytes[8] != '{')
        return false;
    length = zt_load_le64(head->bytes);
    return length >= 1 && length <= UINT32_MAX;
}

/* The magic number in a pickle of protocol 4 or 5: behind a frame's length of 8 bytes. */
static bool is_framed_pytorch(const struct head *head)
{
    const uint8_t *bytes = head->bytes;

    return head->length >= 11 + PYTORCH_NUMBER_BYTES && bytes[0] == 0x80 &&
           (bytes[1] == 4 || bytes[1] == 5) && bytes[2] == 0x95 &&
           memcmp(bytes + 11, PYTORCH_NUMBER, PYTORCH_NUMBER_BYTES) == 0;
}

/* A tar archive, of which PyTorch wrote some before 0.1.10. */
static enum zt_status refuse_tar(struct zt_source *source, struct zt_error *error)
{
    char magic[TAR_MAGIC_BYTES];
    enum zt_status status = ZT_OK;

    if (zt_source_size(source) < TAR_MAGIC_AT + TAR_MAGIC_BYTES)
        return ZT_OK;
    status = zt_source_read_at(source, TAR_MAGIC_AT, magic, sizeof(magic), error);
    if (status != ZT_OK || memcmp(magic, "ustar", TAR_MAGIC_BYTES) != 0)
        return status;
    return zt_fail(
        error, ZT_UNSUPPORTED, NULL, 0,
        "the content is a tar archive, as PyTorch wrote before 0.1.10, which is not read");
}

static enum zt_status read_head(struct zt_source *source, struct head *out_head,
                                struct zt_error *error)
{
    struct head head = {.file_size = zt_source_size(source)};
    enum zt_status status;

    head.length = head.file_size < HEAD_BYTES ? (size_t)head.file_size : HEAD_BYTES;
    status = zt_source_read_at(source, 0, head.bytes, head.length, error);
    if (status == ZT_OK)
        *out_head = head;
    return status;
}

static bool head_begins(const struct head *head, const char *text)
{
    const size_t length = strlen(text);

    return head->length >= length && memcmp(head->bytes, text, length) == 0;
}

/* Names what people have in place of a model: what git leaves without git-lfs, a page that a
 * browser would show, and pickles of something else. */
static enum zt_status refuse_unknown(const struct head *head, struct zt_error *error)
{
    static const char rule[] = "zt §Detection UnknownFormat";

    if (head->file_size == 0)
        return zt_fail(error, ZT_INVALID, rule, 0, "the file is empty");
    if (head_begins(head, "version https://git-lfs.") ||
        head_begins(head, "version https://hawser."))
        return zt_fail(error, ZT_INVALID, "zt §Detection GitLfsPointer", 0,
                       "the content is a git-LFS pointer in place of the file itself, which "
                       "\"git lfs pull\" in its repository fetches");
    if (head_begins(head, "<!DOCTYPE") || head_begins(head, "<!doctype") ||
        head_begins(head, "<html"))
        return zt_fail(error, ZT_INVALID, rule, 0,
                       "the content is a web page, as a failed or unauthorized download leaves it");
    if (head->length > 2 && head->bytes[0] == 0x80 && head->bytes[1] >= 2 && head->bytes[1] <= 5)
        return zt_fail(error, ZT_INVALID, rule, 0,
                       "the content looks like a pickle, but not like one that torch.save wrote");
    return zt_fail(error, ZT_INVALID, rule, 0,
                   "the content (%" PRIu64 " byte%s) is of no known format", head->file_size,
                   head->file_size == 1 ? "" : "s");
}

/* Content without a magic: a message of ONNX, or nothing that is known. */
static enum zt_status open_unmarked(struct zt_source *source, const struct head *head,
                                    struct zt_model **out_model, struct zt_error *error)
{
    bool is_onnx = false;
    enum zt_status status = ZT_OK;

    if (head->file_size > 0)
        status = onnx_detect(source, &is_onnx, error);
    if (status != ZT_OK)
        return status;
    if (is_onnx)
        return onnx_open(source, out_model, error);
    return refuse_unknown(head, error);
}

enum zt_status zt_model_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error)
{
    struct head head;
    enum zt_status status = read_head(source, &head, error);

    if (status != ZT_OK)
        return status;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        assert(formats[i].length <= HEAD_BYTES);
        if (head.length < formats[i].length ||
            memcmp(head.bytes, formats[i].magic, formats[i].length) != 0)
            continue;
        if (formats[i].from_end)
            advise_end(source);
        if (formats[i].open != NULL)
            return formats[i].open(source, out_model, error);
        return zt_fail(error, ZT_UNSUPPORTED, NULL, 0, "the content is %s, which is not read",
                       formats[i].name);
    }
    if (is_safetensors(&head))
        return safetensors_open(source, out_model, error);
    if (is_framed_pytorch(&head))
        return pytorch_legacy_open(source, out_model, error);
    status = refuse_tar(source, error);
    if (status != ZT_OK)
        return status;
    return open_unmarked(source, &head, out_model, error);
}
