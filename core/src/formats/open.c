/* Opening a container: detecting its format by its first bytes, and the steps that all readers
 * share.
 *
 * The error for a known format that is not read names the format, so that the file does not look
 * damaged. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "cbor/json_read.h"
#include "formats/formats.h"
#include "model/extents.h"

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
    if (reader->keeps_only_names)
        zt_model_keep_names(model);
    *out_model = model;
    return ZT_OK;
}

/* --- which format --- */

#define UNKNOWN_RULE "zt §Detection UnknownFormat"
#define HEAD_BYTES   32
/* White space that may precede the JSON of safetensors. */
#define SPACES_MAX      65536
#define SPACES_PIECE    256
#define TAR_MAGIC_AT    257
#define TAR_MAGIC_BYTES 5
/* The bytes at the end of a file that is read from its end. */
#define END_BYTES ((uint64_t)1 << 20)

struct head {
    uint8_t bytes[HEAD_BYTES];
    size_t length;
    uint64_t file_size;
};

/* The magic number of PyTorch's stacked pickles, with STOP. */
#define PYTORCH_NUMBER       "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define PYTORCH_NUMBER_BYTES 13
/* In protocol 4 or 5: behind PROTO, FRAME and the frame's length. */
#define FRAMED_NUMBER_AT 11
/* No format has a header below that, except ONNX. */
#define HEADER_MIN_BYTES 8

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

/* Fetches the end of a remote file in one piece: a footer, and most manifests. */
static void advise_end(struct zt_source *source)
{
    const uint64_t size = zt_source_size(source);
    const uint64_t length = size < END_BYTES ? size : END_BYTES;

    zt_source_advise(source, size - length, length);
}

/* The first byte from a position on that is not white space of JSON; NUL if none of SPACES_MAX
 * is. */
static enum zt_status find_text(struct zt_source *source, uint64_t from, uint64_t size,
                                char *out_byte, struct zt_error *error)
{
    const uint64_t end = size - from < SPACES_MAX ? size : from + SPACES_MAX;
    char piece[SPACES_PIECE];

    assert(from <= size);
    *out_byte = '\0';
    while (from < end) {
        const size_t length = end - from < sizeof(piece) ? (size_t)(end - from) : sizeof(piece);
        enum zt_status status = zt_source_read_at(source, from, piece, length, error);

        if (status != ZT_OK)
            return status;
        for (size_t i = 0; i < length; i++) {
            if (!zt_json_is_space(piece[i])) {
                *out_byte = piece[i];
                return ZT_OK;
            }
        }
        from += length;
    }
    return ZT_OK;
}

/* A length of 8 bytes, then JSON. A length past the end of the file is left to the reader, which
 * reports a truncated file; 2^32 or more is not taken for a length. */
static enum zt_status detect_safetensors(struct zt_source *source, const struct head *head,
                                         bool *out_is, struct zt_error *error)
{
    const size_t length_bytes = 8;
    uint64_t length;
    char first;
    enum zt_status status = ZT_OK;

    *out_is = false;
    if (head->length <= length_bytes)
        return ZT_OK;
    length = zt_load_le64(head->bytes);
    if (length < 1 || length > UINT32_MAX)
        return ZT_OK;
    first = (char)head->bytes[length_bytes];
    if (zt_json_is_space(first))
        status = find_text(source, length_bytes, head->file_size, &first, error);
    *out_is = first == '{';
    return status;
}

/* The magic number in a pickle of protocol 4 or 5. */
static bool is_framed_pytorch(const struct head *head)
{
    const uint8_t *bytes = head->bytes;

    return head->length >= FRAMED_NUMBER_AT + PYTORCH_NUMBER_BYTES && bytes[0] == 0x80 &&
           (bytes[1] == 4 || bytes[1] == 5) && bytes[2] == 0x95 &&
           memcmp(bytes + FRAMED_NUMBER_AT, PYTORCH_NUMBER, PYTORCH_NUMBER_BYTES) == 0;
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
        "the content is a tar archive, as PyTorch wrote before 0.1.10, which is not supported");
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

/* The magic number in a pickle of protocol 4 or 5, as far as the file goes. */
static bool begins_framed_pytorch(const struct head *head)
{
    const uint8_t *bytes = head->bytes;

    return head->length >= 3 && bytes[0] == 0x80 && (bytes[1] == 4 || bytes[1] == 5) &&
           bytes[2] == 0x95 && head->file_size < FRAMED_NUMBER_AT + PYTORCH_NUMBER_BYTES &&
           (head->length <= FRAMED_NUMBER_AT ||
            memcmp(bytes + FRAMED_NUMBER_AT, PYTORCH_NUMBER, head->length - FRAMED_NUMBER_AT) == 0);
}

/* Whether the file is the beginning of a magic, or of the length that safetensors begin with. */
static bool is_beginning(const struct head *head)
{
    assert(head->length <= head->file_size);
    if (head->file_size < HEADER_MIN_BYTES)
        return true;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (head->file_size < formats[i].length &&
            memcmp(head->bytes, formats[i].magic, head->length) == 0)
            return true;
    if (begins_framed_pytorch(head))
        return true;
    return head->file_size == 8 && head->bytes[7] == 0 && zt_load_le64(head->bytes) > 0 &&
           zt_load_le64(head->bytes) <= UINT32_MAX;
}

/* Recognises common mistakes: a pointer that git leaves without git-lfs, a web page, and pickles of
 * other data. */
static enum zt_status refuse_unknown(const struct head *head, struct zt_error *error)
{
    static const char rule[] = UNKNOWN_RULE;

    if (head->file_size == 0)
        return zt_fail(error, ZT_INVALID, rule, 0, "the file is empty");
    if (is_beginning(head))
        return zt_fail(error, ZT_INVALID, rule, 0,
                       CUT_OFF "it ends in its header (%" PRIu64 " byte%s)", head->file_size,
                       head->file_size == 1 ? "" : "s");
    if (head_begins(head, "version https://git-lfs.") ||
        head_begins(head, "version https://hawser."))
        return zt_fail(error, ZT_INVALID, "zt §Detection GitLfsPointer", 0,
                       "the content is a Git LFS pointer instead of the file itself; run \"git lfs "
                       "pull\" in its repository");
    if (head_begins(head, "<!DOCTYPE") || head_begins(head, "<!doctype") ||
        head_begins(head, "<html"))
        return zt_fail(
            error, ZT_INVALID, rule, 0,
            "the content is a web page, probably from a failed or unauthorized download");
    if (head->length > 2 && head->bytes[0] == 0x80 && head->bytes[1] >= 2 && head->bytes[1] <= 5)
        return zt_fail(error, ZT_INVALID, rule, 0,
                       "the content looks like a pickle, but not one written by torch.save");
    return zt_fail(error, ZT_INVALID, rule, 0,
                   "the content (%" PRIu64 " byte%s) has no known format", head->file_size,
                   head->file_size == 1 ? "" : "s");
}

/* Content without a magic: a message of ONNX, or an unknown format. */
static enum zt_status open_unmarked(struct zt_source *source, const struct head *head,
                                    struct zt_model **out_model, struct zt_error *error)
{
    enum onnx_likeness likeness = ONNX_NOT;
    enum zt_status status = ZT_OK;

    if (head->file_size > 0)
        status = onnx_detect(source, &likeness, error);
    if (status != ZT_OK)
        return status;
    if (likeness == ONNX_MESSAGE)
        return onnx_open(source, out_model, error);
    if (likeness == ONNX_BEGINNING)
        return zt_fail(error, ZT_INVALID, UNKNOWN_RULE, 0,
                       CUT_OFF "it begins like an ONNX model, but ends before the graph");
    return refuse_unknown(head, error);
}

enum zt_status zt_model_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error)
{
    struct head head;
    bool is_safetensors;
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
        return zt_fail(error, ZT_UNSUPPORTED, NULL, 0, "the content is %s, which is not supported",
                       formats[i].name);
    }
    status = detect_safetensors(source, &head, &is_safetensors, error);
    if (status != ZT_OK)
        return status;
    if (is_safetensors)
        return safetensors_open(source, out_model, error);
    if (is_framed_pytorch(&head))
        return pytorch_legacy_open(source, out_model, error);
    status = refuse_tar(source, error);
    if (status != ZT_OK)
        return status;
    return open_unmarked(source, &head, out_model, error);
}
