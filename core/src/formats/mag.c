/* .mag files: which of the variants it is, and version 1, whose two layouts the header does not
 * tell apart.
 *
 * Both are tried; the layout whose records are all in order and whose checksum is right is the
 * file's. The checksum's polynomial and cover are unclear in the specification, so each reading of
 * it is taken. */
#include "formats/formats.h"

#include <inttypes.h>

#include "formats/little_endian.h"
#include "formats/mag_attributes.h"
#include "formats/mag_m3.h"
#include "formats/mag_m4.h"
#include "formats/mag_records.h"
#include "model/extents.h"
#include "zt/digest.h"

/* From the specification's implementation; of magnetron 0.1.5; of magnetron 0.2. */
#define VERSION_1        1
#define VERSION_SNAPSHOT 100
#define VERSION_STREAM   300

static const struct mag_layout *const layouts[] = {&mag_m1, &mag_m2};
#define LAYOUT_COUNT (sizeof(layouts) / sizeof(*layouts))

/* --- the checksum --- */

static enum zt_status crc32_of(const uint8_t *bytes, size_t length, bool from_start,
                               uint32_t *out_crc, struct zt_error *error)
{
    static const uint8_t zeros[4] = {0};
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;
    size_t after = MAG_CHECKSUM_AT + sizeof(zeros);

    if (zt_hasher_new(ZT_DIGEST_CRC32, &hasher) != ZT_OK)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for hashing");
    if (from_start) {
        zt_hasher_update(hasher, bytes, MAG_CHECKSUM_AT);
        zt_hasher_update(hasher, zeros, sizeof(zeros));
    }
    zt_hasher_update(hasher, bytes + after, length - after);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    *out_crc = (uint32_t)digest.bytes[0] << 24 | (uint32_t)digest.bytes[1] << 16 |
               (uint32_t)digest.bytes[2] << 8 | digest.bytes[3];
    return ZT_OK;
}

static uint32_t crc32c_of(const uint8_t *bytes, size_t length, bool from_start)
{
    static const uint8_t zeros[4] = {0};
    size_t after = MAG_CHECKSUM_AT + sizeof(zeros);
    uint32_t crc = 0;

    if (from_start)
        crc = zt_crc32c(zt_crc32c(0, bytes, MAG_CHECKSUM_AT), zeros, sizeof(zeros));
    return zt_crc32c(crc, bytes + after, length - after);
}

/* CRC-32C or CRC-32, from after the field, or from the file's start with the field taken as zero.
 */
static enum zt_status check_checksum(const struct zt_model *model, uint32_t stated, bool *out_right,
                                     struct zt_error *error)
{
    const uint8_t *bytes = model->storage->manifest;
    size_t length = (size_t)model->manifest_length;

    *out_right = false;
    for (int from_start = 0; from_start < 2; from_start++) {
        uint32_t crc32 = 0;
        enum zt_status status = crc32_of(bytes, length, from_start, &crc32, error);

        if (status != ZT_OK)
            return status;
        *out_right =
            *out_right || crc32 == stated || crc32c_of(bytes, length, from_start) == stated;
    }
    return ZT_OK;
}

/* --- filling a model --- */

struct filling {
    struct zt_builder builder;
    struct mag_attributes attributes;
};

static enum zt_status take_metadata(void *context, const struct mag_metadata *metadata,
                                    struct zt_error *error)
{
    struct filling *filling = context;

    return mag_attributes_add(&filling->attributes, &filling->builder, metadata, error);
}

static enum zt_status take_tensor(void *context, const struct mag_tensor *tensor,
                                  struct zt_error *error)
{
    struct filling *filling = context;

    return mag_tensor_add(&filling->builder, tensor, error);
}

static enum zt_status fill(struct filling *filling, const struct mag_layout *layout,
                           const struct mag_header *header, struct zt_source *source,
                           struct zt_error *error)
{
    const struct mag_visitor visitor = {take_metadata, take_tensor, filling};
    struct zt_model *model = filling->builder.model;
    uint64_t end;
    enum zt_status status;

    model->format = ZT_FORMAT_MAG;
    model->format_name = "mag";
    model->version = (struct zt_text){"1", 1};
    status = mag_records_walk(layout, header, source, &visitor, &end, error);
    return status == ZT_OK ? mag_attributes_settle(&filling->attributes, &filling->builder, error)
                           : status;
}

static enum zt_status finish(struct zt_builder *builder, struct zt_model **out_model,
                             struct zt_error *error)
{
    struct zt_model *model = NULL;
    enum zt_status status = zt_builder_finish(builder, "mag §Names DuplicateName", &model, error);

    if (status != ZT_OK)
        return status;
    status = zt_extents_check(model, true, "mag §Data Overlap", error);
    if (status != ZT_OK) {
        zt_model_free(model);
        return status;
    }
    *out_model = model;
    return ZT_OK;
}

/* *out_model stays as it is when the checksum is not that of this layout's records. */
static enum zt_status try_layout(const struct mag_layout *layout, const struct mag_header *header,
                                 uint64_t end, struct zt_source *source,
                                 struct zt_model **out_model, struct zt_error *error)
{
    struct filling filling = {0};
    bool is_right = false;
    enum zt_status status = zt_builder_init(&filling.builder, source, 0, end, error);

    if (status != ZT_OK)
        return status;
    status = check_checksum(filling.builder.model, header->checksum, &is_right, error);
    if (status == ZT_OK && is_right)
        status = fill(&filling, layout, header, source, error);
    if (status == ZT_OK && is_right)
        status = finish(&filling.builder, out_model, error);
    mag_attributes_free(&filling.attributes);
    zt_builder_abandon(&filling.builder);
    return status;
}

/* --- which layout --- */

/* What the walks found. */
struct findings {
    uint64_t ends[LAYOUT_COUNT]; /* of the records; 0: they are not in order */
    struct zt_error furthest;    /* of the walk that came furthest before it failed */
};

static enum zt_status walk_layout(size_t number, const struct mag_header *header,
                                  struct zt_source *source, struct findings *findings,
                                  struct zt_error *failure)
{
    uint64_t end = 0;
    enum zt_status status = mag_records_walk(layouts[number], header, source, NULL, &end, failure);

    if (status == ZT_OK && end > MAG_RECORDS_MAX)
        status = zt_fail(failure, ZT_INVALID, "mag §Header TooLarge", end,
                         "records of %" PRIu64 " bytes, more than 1 GiB", end);
    if (status == ZT_OK)
        findings->ends[number] = end;
    else if (status == ZT_INVALID &&
             (findings->furthest.status == ZT_OK || failure->offset > findings->furthest.offset))
        findings->furthest = *failure;
    return status == ZT_INVALID ? ZT_OK : status;
}

static enum zt_status walk_layouts(const struct mag_header *header, struct zt_source *source,
                                   struct findings *findings, struct zt_error *error)
{
    struct zt_error failure;
    enum zt_status status = ZT_OK;

    for (size_t i = 0; status == ZT_OK && i < LAYOUT_COUNT; i++)
        status = walk_layout(i, header, source, findings, &failure);
    if (status != ZT_OK && error != NULL)
        *error = failure;
    return status;
}

static enum zt_status fail_all(const struct findings *findings, struct zt_error *error)
{
    bool first = findings->ends[0] != 0;
    bool second = findings->ends[1] != 0;

    if (first || second)
        return zt_fail(error, ZT_INVALID, "mag §Header Checksum", MAG_CHECKSUM_AT,
                       "the records are in order in %s%s%s, but the checksum is not theirs",
                       first ? layouts[0]->name : "", first && second ? " and in " : "",
                       second ? layouts[1]->name : "");
    if (error != NULL)
        *error = findings->furthest;
    return ZT_INVALID;
}

static enum zt_status open_version_1(const struct mag_header *header, struct zt_source *source,
                                     struct zt_model **out_model, struct zt_error *error)
{
    struct findings findings = {0};
    struct zt_model *model = NULL;
    enum zt_status status = walk_layouts(header, source, &findings, error);

    for (size_t i = 0; status == ZT_OK && model == NULL && i < LAYOUT_COUNT; i++)
        if (findings.ends[i] != 0)
            status = try_layout(layouts[i], header, findings.ends[i], source, &model, error);
    if (status == ZT_OK && model == NULL)
        return fail_all(&findings, error);
    if (status == ZT_OK)
        *out_model = model;
    return status;
}

/* --- all of them --- */

static enum zt_status open_snapshot(struct zt_source *source, struct zt_model **out_model,
                                    struct zt_error *error)
{
    uint8_t head[MAG_M3_HEAD_BYTES];
    uint64_t size = zt_source_size(source);
    enum zt_status status;

    if (size < sizeof(head))
        return zt_fail(error, ZT_INVALID, "mag §Header FileTooSmall", 0,
                       "a file of %" PRIu64 " bytes", size);
    status = zt_source_read_at(source, 0, head, sizeof(head), error);
    if (status != ZT_OK)
        return status;
    if (!mag_m3_probe(head))
        return zt_fail(error, ZT_UNSUPPORTED, NULL, 4,
                       "the content is .mag of version 100 but no snapshot; no release of "
                       "magnetron wrote such files");
    return mag_m3_open(source, out_model, error);
}

enum zt_status mag_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error)
{
    struct mag_header header;
    enum zt_status status = mag_header_read(source, &header, error);

    if (status != ZT_OK)
        return status;
    if (header.version == VERSION_SNAPSHOT)
        return open_snapshot(source, out_model, error);
    if (header.version == VERSION_STREAM)
        return mag_m4_open(source, out_model, error);
    if (header.version != VERSION_1)
        return zt_fail(error, ZT_INVALID, "mag §Header Version", 4,
                       "version %" PRIu32 ", known are 1, 100 and 300", header.version);
    if (header.reserved != 0)
        return zt_fail(error, ZT_INVALID, "mag §Header Reserved", MAG_RESERVED_AT,
                       "the reserved word is not 0");
    return open_version_1(&header, source, out_model, error);
}
