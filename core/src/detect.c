/* Opening a container whatever its name: the format is told by the first bytes.
 *
 * Formats that are known but not read here are named in the error, so that nobody takes them for broken. */
#include <inttypes.h>
#include <string.h>

#include "formats/fields.h"
#include "formats/formats.h"
#include "zt/model.h"

#define HEAD_BYTES 32
/* Of a ZIP archive's first local header: where the length of its name stands, and the name (APPNOTE 4.3.7). */
#define ZIP_NAME_LENGTH_AT 26
#define ZIP_NAME_AT        30
#define ZIP_NAME_MAX       256
/* Safetensors' own bound on its header. */
#define SAFETENSORS_HEADER_MAX (100ull << 20)

struct head {
    uint8_t bytes[HEAD_BYTES];
    size_t length;
    uint64_t file_size;
};

struct known {
    const char *magic;
    size_t length;
    enum zt_status (*open)(struct zt_source *source, struct zt_model **out_model, struct zt_error *error);
    /* Where open is NULL: what it is called. */
    const char *name;
};

static const struct known formats[] = {
    {"\x89ZT2\r\n\x1a\n", 8, zt2_open, NULL},
    {"ZTEN0001", 8, zt01_open, NULL},
    {"ZTEN1000", 8, zt1_open, NULL},
    {"GGUF", 4, NULL, "GGUF"},
    {"MAG!", 4, NULL, ".mag"},
    {"MAG&", 4, NULL, ".mag (stream)"},
    {"\x93NUMPY", 6, NULL, "NPY"},
    {"PK\x05\x06", 4, NULL, "NPZ (empty)"},
    {"\x89HDF\r\n\x1a\n", 8, NULL, "HDF5"},
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14, NULL, "PyTorch (pickle)"},
};

static enum zt_status fail_unread(const char *name, struct zt_error *error)
{
    return zt_fail(error, ZT_UNSUPPORTED, NULL, 0, "the content is %s, which is not read", name);
}

static bool begins_with(const struct head *head, const char *magic, size_t length)
{
    return head->length >= length && memcmp(head->bytes, magic, length) == 0;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* NumPy and PyTorch both keep their arrays in ZIP archives; the first entry's name tells which. */
static const char *zip_kind(struct zt_source *source, const struct head *head)
{
    char name[ZIP_NAME_MAX];
    if (head->length < ZIP_NAME_AT) {
        return "a ZIP archive";
    }
    size_t length = (size_t)head->bytes[ZIP_NAME_LENGTH_AT] | (size_t)head->bytes[ZIP_NAME_LENGTH_AT + 1] << 8;
    if (length > sizeof name || zt_source_read_at(source, ZIP_NAME_AT, name, length, NULL) != ZT_OK) {
        return "a ZIP archive";
    }
    if (ends_with(name, length, ".npy")) {
        return "NPZ";
    }
    return ends_with(name, length, "data.pkl") ? "PyTorch (ZIP)" : "a ZIP archive";
}

/* A length in 8 bytes and JSON of that length. */
static bool is_safetensors(const struct head *head)
{
    if (head->length < 9 || head->bytes[8] != '{') {
        return false;
    }
    uint64_t length = zt_load_le64(head->bytes);
    return length >= 1 && length <= SAFETENSORS_HEADER_MAX && length <= head->file_size - 8;
}

static enum zt_status read_head(struct zt_source *source, struct head *out_head, struct zt_error *error)
{
    struct head head = {.file_size = zt_source_size(source)};
    head.length = head.file_size < HEAD_BYTES ? (size_t)head.file_size : HEAD_BYTES;
    enum zt_status status = zt_source_read_at(source, 0, head.bytes, head.length, error);
    if (status == ZT_OK) {
        *out_head = head;
    }
    return status;
}

enum zt_status zt_model_open(struct zt_source *source, struct zt_model **out_model, struct zt_error *error)
{
    struct head head;
    enum zt_status status = read_head(source, &head, error);
    if (status != ZT_OK) {
        return status;
    }
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (begins_with(&head, formats[i].magic, formats[i].length)) {
            return formats[i].open != NULL ? formats[i].open(source, out_model, error)
                                           : fail_unread(formats[i].name, error);
        }
    }
    if (begins_with(&head, "PK\x03\x04", 4)) {
        return fail_unread(zip_kind(source, &head), error);
    }
    if (is_safetensors(&head)) {
        return fail_unread("safetensors", error);
    }
    if (head.file_size == 0) {
        return zt_fail(error, ZT_INVALID, "zt §Detection UnknownFormat", 0, "the file is empty");
    }
    return zt_fail(error, ZT_INVALID, "zt §Detection UnknownFormat", 0,
                   "the content (%" PRIu64 " byte%s) is of no known format", head.file_size,
                   head.file_size == 1 ? "" : "s");
}
