/* zTensor 1.0, 1.1 and 1.2: the container and the manifest's root (zTensor 1.2 sections 1, 4 and
 * 5).
 *
 * 1.0 has the same head but no magic at its end, and calls objects "tensors"; 1.1 and 1.2 differ
 * only in optional fields. Objects are read in zt1_object.c. */
#include "formats/formats.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "formats/zt/zt1_object.h"
#include "model/layout.h"

static const char magic[8] = {'Z', 'T', 'E', 'N', '1', '0', '0', '0'};

/* Section 5, step 4. */
#define MANIFEST_MAX_BYTES (1ull << 30)
/* A head, a manifest of one byte, its size, and from 1.1 on the magic again. */
#define FILE_MIN_BYTES_1_0 17
#define FILE_MIN_BYTES     25

/* --- the container --- */

struct frame {
    bool is_1_0;
    uint64_t manifest_offset;
    uint64_t manifest_length;
    uint64_t length_offset; /* of manifest_length in the file */
};

static enum zt_status check_frame(const struct frame *frame, uint64_t size, struct zt_error *error)
{
    if (frame->manifest_length > MANIFEST_MAX_BYTES) {
        return zt_fail(error, ZT_INVALID, "zt1 §5 ManifestTooLarge", frame->length_offset,
                       "the manifest's size is %" PRIu64 " bytes, more than 1 GiB",
                       frame->manifest_length);
    }
    if (frame->manifest_length == 0 ||
        frame->manifest_length > frame->length_offset - sizeof(magic)) {
        return zt_fail(error, ZT_INVALID, "zt1 §4 ManifestBounds", frame->length_offset,
                       CUT_OFF "a manifest of %" PRIu64 " bytes does not fit a file of %" PRIu64,
                       frame->manifest_length, size);
    }
    return ZT_OK;
}

static enum zt_status read_frame(struct zt_source *source, struct frame *out_frame,
                                 struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    uint8_t tail[16];
    enum zt_status status;
    struct frame frame;

    if (size < FILE_MIN_BYTES_1_0) {
        return zt_fail(error, ZT_INVALID, "zt1 §4 FileTooSmall", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", size);
    }
    status = zt_source_read_at(source, size - sizeof(tail), tail, sizeof(tail), error);
    if (status != ZT_OK)
        return status;
    frame = (struct frame){.is_1_0 = memcmp(tail + 8, magic, sizeof(magic)) != 0};
    frame.length_offset = size - (frame.is_1_0 ? 8 : 16);
    frame.manifest_length = zt_load_le64(frame.is_1_0 ? tail + 8 : tail);
    if (!frame.is_1_0 && size < FILE_MIN_BYTES) {
        return zt_fail(error, ZT_INVALID, "zt1 §4 FileTooSmall", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", size);
    }
    if (frame.is_1_0 && frame.manifest_length > size - 16) {
        return zt_fail(error, ZT_INVALID, "zt1 §4 FooterMagic", size - 8,
                       CUT_OFF "it ends neither in the magic nor in the size of a manifest");
    }
    status = check_frame(&frame, size, error);
    if (status == ZT_OK) {
        frame.manifest_offset = frame.length_offset - frame.manifest_length;
        assert(frame.manifest_offset >= sizeof(magic));
        *out_frame = frame;
    }
    return status;
}

/* --- the root --- */

static enum zt_status read_version(void *context, const struct zt_field *field,
                                   struct zt_error *error)
{
    struct zt1_reading *reading = context;
    struct zt_placed_text version = {0};
    enum zt_status status = zt_field_text(field, &version, error);

    if (status != ZT_OK)
        return status;
    if (!zt_text_starts_with(version.text, zt_text_from("1.")))
        return zt_fail(error, ZT_INVALID, "zt1 §1 Version", field->offset,
                       "the version is not 1.x");
    reading->builder->model->version = version.text;
    return ZT_OK;
}

static enum zt_status read_objects(void *context, const struct zt_field *field,
                                   struct zt_error *error)
{
    return zt_field_entries(field, zt1_object_read, context, error);
}

static enum zt_status read_attributes(void *context, const struct zt_field *field,
                                      struct zt_error *error)
{
    struct zt1_reading *reading = context;

    return zt_field_attributes(field, &reading->builder->model->attributes, error);
}

/* Checks that the generator is a text; its content is not used. */
static enum zt_status read_generator(void *context, const struct zt_field *field,
                                     struct zt_error *error)
{
    struct zt_placed_text generator;

    (void)context;
    return zt_field_text(field, &generator, error);
}

static const struct zt_map_field root_fields_1_0[] = {
    {"version", ZT_FIELD_REQUIRED, read_version, 0},
    {"tensors", ZT_FIELD_REQUIRED, read_objects, 0},
    {"attributes", ZT_FIELD_REQUIRED | ZT_FIELD_NULLABLE, read_attributes, 0},
    {"generator", ZT_FIELD_REQUIRED, read_generator, 0},
};

static const struct zt_map_field root_fields[] = {
    {"version", ZT_FIELD_REQUIRED, read_version, 0},
    {"objects", ZT_FIELD_REQUIRED, read_objects, 0},
    {"attributes", ZT_FIELD_NULLABLE, read_attributes, 0},
};

static const struct zt_map_schema root_schema_1_0 = {
    .what = "the manifest (1.0, as the file does not end in the magic)",
    .rules = &zt1_rules,
    .fields = root_fields_1_0,
    .count = sizeof(root_fields_1_0) / sizeof(*root_fields_1_0),
};

static const struct zt_map_schema root_schema = {
    .what = "the manifest",
    .rules = &zt1_rules,
    .fields = root_fields,
    .count = sizeof(root_fields) / sizeof(*root_fields),
};

/* Some dtypes of 1.1 were removed in 1.2, so only files that state version 1.1 may use them. */
static enum zt_status check_dtypes_1_1(const struct zt1_reading *reading, struct zt_error *error)
{
    struct zt_text version = reading->builder->model->version;
    bool is_1_1 = version.length >= 3 && memcmp(version.bytes, "1.1", 3) == 0 &&
                  (version.length == 3 || version.bytes[3] == '.');

    if (reading->dtype_1_1_offset != ZT_NO_OFFSET && !is_1_1) {
        return zt_fail(error, ZT_INVALID, "zt1 §2 Dtype", reading->dtype_1_1_offset,
                       "a dtype that only zTensor 1.1 has");
    }
    return ZT_OK;
}

/* A later version that lacks its last 8 bytes ends like 1.0. */
static enum zt_status fail_1_0(const struct zt1_reading *reading, struct zt_error *error)
{
    const struct zt_model *model = reading->builder->model;

    if (model->version.length == 0 || zt_text_is(model->version, "1.0"))
        return ZT_INVALID;
    return zt_fail(error, ZT_INVALID, "zt1 §4 FooterMagic",
                   model->manifest_offset + model->manifest_length,
                   CUT_OFF "the magic at its end is missing");
}

static enum zt_status read_manifest(void *state, struct zt_builder *builder, struct zt_error *error)
{
    struct zt1_reading *reading = state;
    struct zt_model *model = builder->model;
    enum zt_status status;

    reading->builder = builder;
    zt_cbor_reader_init(&reading->reader, model->storage->manifest, (size_t)model->manifest_length,
                        model->manifest_offset, ZT_CBOR_ZT1, &model->storage->arena);
    status = zt_map_read(&reading->reader, reading->is_1_0 ? &root_schema_1_0 : &root_schema,
                         reading, error);
    if (status == ZT_INVALID && reading->is_1_0)
        return fail_1_0(reading, error);
    if (status == ZT_OK)
        status = zt_cbor_end(&reading->reader, error);
    return status == ZT_OK ? check_dtypes_1_1(reading, error) : status;
}

/* --- the whole --- */

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    struct zt1_reading *reading = state;
    struct frame frame = {0};
    enum zt_status status = read_frame(source, &frame, error);

    if (status != ZT_OK)
        return status;
    reading->is_1_0 = frame.is_1_0;
    *out_place = (struct zt_manifest_place){frame.manifest_offset, frame.manifest_length};
    return zt_manifest_check_start(source, frame.manifest_offset, ZT_CBOR_MAJOR_MAP,
                                   frame.is_1_0 ? CUT_OFF
                                       "it ends neither in the magic nor in a manifest"
                                                : "the manifest is not a map",
                                   &zt1_rules, error);
}

static enum zt_status check_layouts(void *state, struct zt_model *model, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    (void)state;
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        status = zt_layout_check(model, &model->objects[i], ZT_LAYOUTS_ZT1, error);
    if (status == ZT_OK)
        zt_layout_find_blocks(model);
    return status;
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_ZT1,
    .name = "zt",
    .duplicate_rule = "zt1 §1 DuplicateName",
    .overlap_rule = "zt1 §4 BlobOverlap",
    .locate = locate,
    .read = read_manifest,
    .check = check_layouts,
};

enum zt_status zt1_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error)
{
    struct zt1_reading reading = {.dtype_1_1_offset = ZT_NO_OFFSET};

    return zt_reader_open(&reader, &reading, source, out_model, error);
}
