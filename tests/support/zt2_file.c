/* zTensor 2 files made from a manifest's text. */
#include "zt2_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "cbor_text.h"
#include "formats/formats.h"
#include "support.h"
#include "zt/digest.h"

static const uint8_t magic[8] = {0x89, 'Z', 'T', '2', '\r', '\n', 0x1a, '\n'};

void zt2_file_make(struct zt2_file *file, uint64_t manifest_offset, const char *manifest)
{
    struct zt_buffer encoded = {0};
    size_t mark = cbor_text_append(&encoded, manifest);
    uint8_t *footer;

    zt2_file_free(file);
    file->length = (size_t)manifest_offset + encoded.length + ZT2_FILE_FOOTER;
    file->bytes = calloc(1, file->length);
    assert_non_null(file->bytes);
    file->manifest_offset = manifest_offset;
    file->mark = strpbrk(manifest, "^@") != NULL ? manifest_offset + mark : ZT_NO_OFFSET;
    memcpy(file->bytes, magic, sizeof(magic));
    if (encoded.length > 0)
        memcpy(file->bytes + manifest_offset, encoded.bytes, encoded.length);
    footer = file->bytes + file->length - ZT2_FILE_FOOTER;
    zt_store_le64(footer, manifest_offset);
    zt_store_le64(footer + 8, encoded.length);
    zt_store_le32(footer + 24, 2);
    memcpy(footer + 32, magic, sizeof(magic));
    zt_buffer_free(&encoded);
    zt2_file_seal(file);
}

void zt2_file_seal(struct zt2_file *file)
{
    size_t length = file->length - ZT2_FILE_FOOTER - (size_t)file->manifest_offset;

    zt_store_le64(file->bytes + file->length - 24,
                  zt_xxh3(file->bytes + file->manifest_offset, length));
}

void zt2_file_free(struct zt2_file *file)
{
    free(file->bytes);
    *file = (struct zt2_file){0};
}

enum zt_status zt2_file_open(const struct zt2_file *file, struct zt_model **out_model,
                             struct zt_error *error)
{
    struct zt_source *source;
    enum zt_status status;

    assert_int_equal(zt_source_from_memory(file->bytes, file->length, &source, error), ZT_OK);
    status = zt2_open(source, out_model, error);
    zt_source_close(source);
    return status;
}

enum zt_status zt2_file_try(const struct zt2_file *file, struct zt_error *error)
{
    struct zt_model *model = NULL;
    enum zt_status status;

    zt_error_clear(error);
    status = zt2_file_open(file, &model, error);
    assert_true((status == ZT_OK) == (model != NULL));
    zt_model_free(model);
    return status;
}

enum zt_status zt2_text_try(const char *manifest, struct zt_error *error)
{
    struct zt2_file file = {0};
    enum zt_status status;

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    status = zt2_file_try(&file, error);
    zt2_file_free(&file);
    return status;
}

void zt2_text_refused(const char *manifest, const char *rule, struct zt_error *error)
{
    struct zt2_file file = {0};
    enum zt_status status;
    uint64_t mark;

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    status = zt2_file_try(&file, error);
    mark = file.mark;
    zt2_file_free(&file);
    if (status != ZT_INVALID || error->rule == NULL || strcmp(error->rule, rule) != 0 ||
        error->offset != mark)
        print_message("%s\n -> %s at +%d, expected at +%d: %s\n", manifest,
                      error->rule != NULL ? error->rule : "no rule",
                      (int)(error->offset - ZT2_MANIFEST_AT), (int)(mark - ZT2_MANIFEST_AT),
                      error->message);
    assert_failure(error, ZT_INVALID, rule, mark);
}
