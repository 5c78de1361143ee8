/* Writing every file that opens in every format: the result opens, is the same when written again,
 * is verified, and decodes to the source's bytes. The first byte chooses the target and whether it
 * is compressed; the rest is the file. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cbor/cbor_write.h"
#include "zt/convert.h"

#define DECODED_MAX    ((uint64_t)1 << 18)
#define COMPONENTS_MAX 16
#define TARGETS        7
/* A zstd block of four bytes decodes to 128 KiB. */
#define RATIO_MAX 32768

static enum zt_status append(void *context, const void *bytes, size_t length,
                             struct zt_error *error)
{
    struct zt_buffer *buffer = context;

    (void)error;
    FUZZ_ASSERT(length > 0);
    zt_buffer_append(buffer, bytes, length);
    FUZZ_ASSERT(!buffer->failed);
    return ZT_OK;
}

static bool is_small(const struct zt_model *model)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < model->component_count; i++) {
        const struct zt_component *part = &model->components[i];
        uint64_t length = part->decoded_length != ZT_LENGTH_UNKNOWN ? part->decoded_length
                                                                    : part->length * RATIO_MAX;

        if (length > DECODED_MAX)
            return false;
        total += length;
    }
    return model->component_count <= COMPONENTS_MAX && total <= DECODED_MAX;
}

static enum zt_status decode(const struct zt_component *part, struct zt_source *source,
                             struct zt_buffer *out)
{
    struct zt_decoder *decoder = NULL;
    size_t length = 1;
    enum zt_status status = zt_decoder_open(part, source, &decoder, NULL);

    while (status == ZT_OK && length > 0) {
        uint8_t piece[4096];

        status = zt_decoder_read(decoder, piece, sizeof(piece), &length, NULL);
        if (status == ZT_OK)
            zt_buffer_append(out, piece, length);
    }
    zt_decoder_close(decoder);
    return status;
}

/* The component of the written model that the outline's is now: found by the names of both. */
static const struct zt_component *find_written(const struct zt_model *written,
                                               const struct zt_model *outline, uint32_t object,
                                               uint32_t part)
{
    const struct zt_object *from = &outline->objects[object];
    const struct zt_object *to = zt_model_find(written, zt_object_name(from));

    return to == NULL ? NULL
                      : zt_object_find(written, to, zt_component_name(&outline->components[part]));
}

static void check_bytes(const struct zt_conversion *conversion, const struct zt_model *written,
                        struct zt_source *written_source)
{
    const struct zt_projection *projection = conversion->projection;
    const struct zt_model *outline = projection->model;

    FUZZ_ASSERT(written->object_count == outline->object_count);
    for (uint32_t i = 0; i < outline->object_count; i++) {
        for (uint32_t j = 0; j < outline->objects[i].component_count; j++) {
            uint32_t number = outline->objects[i].first_component + j;
            const struct zt_component *made = find_written(written, outline, i, number);
            struct zt_buffer before = {0};
            struct zt_buffer after = {0};
            const struct zt_origin *origin;
            const struct zt_component *from;

            /* NPY has no names; its only object is called differently. */
            if (made == NULL && projection->target == ZT_TARGET_NPY)
                made = &written->components[0];
            FUZZ_ASSERT(made != NULL);
            origin = &projection->origins[number];
            from = &conversion->source->components[origin->component];
            FUZZ_ASSERT(decode(from, conversion->files[from->shard], &before) == ZT_OK);
            FUZZ_ASSERT(decode(made, written_source, &after) == ZT_OK);
            if (origin->change == ZT_CHANGE_NONE)
                FUZZ_ASSERT(
                    before.length == after.length &&
                    (before.length == 0 || memcmp(before.bytes, after.bytes, before.length) == 0));
            zt_buffer_free(&before);
            zt_buffer_free(&after);
        }
    }
}

static void check_digests(const struct zt_model *model, struct zt_source *source)
{
    for (uint32_t i = 0; i < model->component_count; i++) {
        struct zt_component_check check;

        FUZZ_ASSERT(zt_component_check(model, &model->components[i], source, NULL, &check, NULL) ==
                    ZT_OK);
        FUZZ_ASSERT(check.verdict == ZT_VERDICT_VERIFIED || check.verdict == ZT_VERDICT_UNDIGESTED);
    }
}

static void check_written(const struct zt_conversion *conversion, const struct zt_buffer *bytes)
{
    struct zt_source *source;
    struct zt_model *model = NULL;
    struct zt_error error;

    FUZZ_ASSERT(zt_source_from_memory(bytes->bytes, bytes->length, &source, NULL) == ZT_OK);
    FUZZ_ASSERT(zt_model_open(source, &model, &error) == ZT_OK);
    check_bytes(conversion, model, source);
    check_digests(model, source);
    if (conversion->projection->target == ZT_TARGET_ZT2_CANONICAL)
        FUZZ_ASSERT(zt_canonical_check(model, source, &error) == ZT_OK);
    zt_model_free(model);
    zt_source_close(source);
}

static void convert(const struct zt_model *model, struct zt_source *source, enum zt_target target,
                    bool zstd)
{
    struct zt_source *files[] = {source};
    struct zt_conversion conversion = {.source = model, .files = files, .options = {.zstd = zstd}};
    struct zt_projection *projection = NULL;
    struct zt_buffer bytes[2] = {{0}, {0}};
    struct zt_error error;
    enum zt_status status = zt_model_project(model, target, &projection, &error);

    FUZZ_ASSERT(status == ZT_OK || status == ZT_UNSUPPORTED);
    conversion.projection = projection;
    for (int turn = 0; status == ZT_OK && turn < 2; turn++) {
        struct zt_sink sink = {append, &bytes[turn]};

        status = zt_model_convert(&conversion, &sink, &error);
    }
    if (status == ZT_OK) {
        FUZZ_ASSERT(bytes[0].length == bytes[1].length);
        FUZZ_ASSERT(memcmp(bytes[0].bytes, bytes[1].bytes, bytes[0].length) == 0);
        check_written(&conversion, &bytes[0]);
    } else {
        FUZZ_ASSERT(error.status == status && error.message[0] != '\0');
        FUZZ_ASSERT(status != ZT_IO && status != ZT_NO_MEMORY);
    }
    zt_projection_free(projection);
    zt_buffer_free(&bytes[0]);
    zt_buffer_free(&bytes[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct zt_source *source;
    struct zt_model *model = NULL;
    enum zt_target target;
    bool zstd;
    size_t file_length;
    uint8_t *file;

    if (length == 0)
        return 0;
    target = (enum zt_target)(bytes[0] % TARGETS);
    zstd = bytes[0] >= TARGETS && (target == ZT_TARGET_ZT1 || target == ZT_TARGET_ZT2);
    file_length = length - 1;
    file = malloc(file_length + 1);
    FUZZ_ASSERT(file != NULL);
    memcpy(file, bytes + 1, file_length);
    if (file_length > 4 && memcmp(file, "\x89ZT2", 4) == 0)
        fuzz_repair_zt2(file, file_length);
    else if (file_length > 4 && memcmp(file, "MAG!", 4) == 0)
        fuzz_repair_mag(file, file_length);
    FUZZ_ASSERT(zt_source_from_memory(file, file_length, &source, NULL) == ZT_OK);
    if (zt_model_open(source, &model, NULL) == ZT_OK && model->shard_count == 0 && is_small(model))
        convert(model, source, target, zstd);
    zt_model_free(model);
    zt_source_close(source);
    free(file);
    return 0;
}
