/* Opening a container whatever its name: the format is told by the first bytes.
 *
 * Formats that are known but not read here are named in the error, so that nobody takes them for
 * broken. */
#include <inttypes.h>
#include <string.h>

#include "formats/fields.h"
#include "formats/formats.h"
#include "zt/model.h"

#define HEAD_BYTES 32

struct head {
    uint8_t bytes[HEAD_BYTES];
    size_t length;
    uint64_t file_size;
};

struct known {
    const char *magic;
    size_t length;
    enum zt_status (*open)(struct zt_source *source, struct zt_model **out_model,
                           struct zt_error *error);
    /* Where open is NULL: what it is called. */
    const char *name;
};

static const struct known formats[] = {
    {"\x89ZT2\r\n\x1a\n", 8, zt2_open, NULL},
    {"ZTEN0001", 8, zt01_open, NULL},
    {"ZTEN1000", 8, zt1_open, NULL},
    {"GGUF", 4, gguf_open, NULL},
    {"MAG!", 4, mag_open, NULL},
    {"MAG&", 4, NULL, ".mag as a stream (before magnetron 0.1.1)"},
    {"\x93NUMPY", 6, npy_open, NULL},
    {"PK\x03\x04", 4, npz_open, NULL},
    /* An archive of nothing. */
    {"PK\x05\x06", 4, npz_open, NULL},
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

/* A length in 8 bytes, and JSON. Lengths that cannot be right are told by the reader, so that a
 * file cut short is called what it is; from 2^32 on the 8 bytes are somebody else's. */
static bool is_safetensors(const struct head *head)
{
    uint64_t length;

    if (head->length < 9 || head->bytes[8] != '{')
        return false;
    length = zt_load_le64(head->bytes);
    return length >= 1 && length <= UINT32_MAX;
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

enum zt_status zt_model_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error)
{
    struct head head;
    enum zt_status status = read_head(source, &head, error);

    if (status != ZT_OK)
        return status;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (begins_with(&head, formats[i].magic, formats[i].length)) {
            return formats[i].open != NULL ? formats[i].open(source, out_model, error)
                                           : fail_unread(formats[i].name, error);
        }
    }
    if (is_safetensors(&head))
        return safetensors_open(source, out_model, error);
    if (head.file_size == 0)
        return zt_fail(error, ZT_INVALID, "zt §Detection UnknownFormat", 0, "the file is empty");
    return zt_fail(error, ZT_INVALID, "zt §Detection UnknownFormat", 0,
                   "the content (%" PRIu64 " byte%s) is of no known format", head.file_size,
                   head.file_size == 1 ? "" : "s");
}
