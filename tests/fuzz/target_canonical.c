/* The canonical form of zTensor 2: the input is the manifest, after two blobs at multiples of 64
 * KiB. If a file is canonical, the writer makes the same bytes of its model. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "formats/formats.h"
#include "zt/convert.h"
#include "zt/verify.h"

#define BLOCK       ((size_t)65536)
#define MANIFEST_AT (3 * BLOCK)
#define FOOTER      40
#define BLOB        8

static const uint8_t magic[8] = {0x89, 'Z', 'T', '2', '\r', '\n', 0x1a, '\n'};

/* The rest of the file that the writer must produce. */
struct rest {
    const uint8_t *bytes;
    size_t length;
};

static enum zt_status compare(void *context, const void *bytes, size_t length,
                              struct zt_error *error)
{
    struct rest *rest = context;

    (void)error;
    FUZZ_ASSERT(length <= rest->length && memcmp(rest->bytes, bytes, length) == 0);
    rest->bytes += length;
    rest->length -= length;
    return ZT_OK;
}

static void check_written(const struct zt_model *model, struct zt_source *source, struct rest rest)
{
    struct zt_source *files[] = {source};
    struct zt_conversion conversion = {.source = model, .files = files};
    struct zt_sink sink = {compare, &rest};
    struct zt_projection *projection = NULL;
    struct zt_error error;

    FUZZ_ASSERT(zt_model_project(model, ZT_TARGET_ZT2_CANONICAL, &projection, &error) == ZT_OK);
    conversion.projection = projection;
    FUZZ_ASSERT(zt_model_convert(&conversion, &sink, &error) == ZT_OK);
    FUZZ_ASSERT(rest.length == 0);
    zt_projection_free(projection);
}

static uint8_t *make_file(const uint8_t *manifest, size_t length, size_t *out_length)
{
    uint8_t *file = calloc(1, MANIFEST_AT + length + FOOTER);
    uint8_t *footer;

    FUZZ_ASSERT(file != NULL);
    memcpy(file, magic, sizeof(magic));
    memset(file + BLOCK, 1, BLOB);
    memset(file + 2 * BLOCK, 2, BLOB);
    if (length > 0)
        memcpy(file + MANIFEST_AT, manifest, length);
    *out_length = MANIFEST_AT + length + FOOTER;
    footer = file + MANIFEST_AT + length;
    footer[2] = MANIFEST_AT >> 16;
    footer[24] = 2;
    memcpy(footer + 32, magic, sizeof(magic));
    fuzz_repair_zt2(file, *out_length);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    size_t file_length;
    uint8_t *file = make_file(bytes, length, &file_length);
    struct zt_source *source;
    struct zt_model *model = NULL;
    struct zt_error error;

    FUZZ_ASSERT(zt_source_from_memory(file, file_length, &source, NULL) == ZT_OK);
    if (zt2_open(source, &model, &error) == ZT_OK) {
        if (model->shard_count == 0 && zt_canonical_check(model, source, &error) == ZT_OK)
            check_written(model, source, (struct rest){file, file_length});
        fuzz_container(file, file_length, zt2_open);
    }
    zt_model_free(model);
    zt_source_close(source);
    free(file);
    return 0;
}
