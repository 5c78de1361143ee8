/* .mag files: choosing the variant, and opening version 1, whose header does not state which of two
 * layouts follows.
 *
 * Both layouts are tried; a file has the layout in which all records are valid and the checksum is
 * right. The specification leaves open which polynomial the checksum uses and which bytes it
 * covers, so every reading is accepted. */
#include "formats/mag/mag.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cut_off.h"
#include "formats/formats.h"
#include "zt/digest.h"

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

    assert(length >= after);
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

/* CRC-32C or CRC-32, either of the bytes after the field, or from the start of the file with the
 * field taken as zero. */
static enum zt_status check_checksum(const struct zt_model *model, uint32_t stated, bool *out_right,
                                     struct zt_error *error)
{
    const uint8_t *bytes = model->storage->manifest;
    size_t length = (size_t)model->manifest_length;

    assert(length >= MAG_HEADER_BYTES);
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

/* --- one layout --- */

/* An attempt to read a file of version 1 in one layout. */
struct attempt {
    const struct mag_layout *layout;
    const struct mag_header *header;
    uint64_t end; /* of the records; 0 if they are not valid */
    bool has_other_checksum;
};

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    const struct attempt *attempt = state;

    (void)source;
    (void)error;
    *out_place = (struct zt_manifest_place){.offset = 0, .length = attempt->end};
    return ZT_OK;
}

static enum zt_status read_records(void *state, struct zt_builder *builder, struct zt_error *error)
{
    struct attempt *attempt = state;
    bool is_right = false;
    enum zt_status status =
        check_checksum(builder->model, attempt->header->checksum, &is_right, error);

    if (status != ZT_OK)
        return status;
    attempt->has_other_checksum = !is_right;
    if (!is_right)
        return zt_fail(error, ZT_INVALID, "mag §Header Checksum", MAG_CHECKSUM_AT,
                       "the checksum does not match the records");
    builder->model->version = zt_text_from("1");
    return mag_records_read(attempt->layout, attempt->header, builder, error);
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_MAG,
    .name = "mag",
    .duplicate_rule = "mag §Names DuplicateName",
    .overlap_rule = "mag §Data Overlap",
    .covers_manifest = true,
    .locate = locate,
    .read = read_records,
};

/* --- which layout --- */

/* Walks the records in one layout. If the walk fails further into the file than *furthest, its
 * failure replaces *furthest. */
static enum zt_status measure(struct attempt *attempt, struct zt_source *source,
                              struct zt_error *furthest, struct zt_error *error)
{
    struct zt_error failure;
    uint64_t end = 0;
    enum zt_status status =
        mag_records_measure(attempt->layout, attempt->header, source, &end, &failure);

    if (status == ZT_OK && end > MAG_RECORDS_MAX)
        status = zt_fail(&failure, ZT_INVALID, "mag §Header TooLarge", end,
                         "records of %" PRIu64 " bytes, more than 1 GiB", end);
    if (status == ZT_OK) {
        assert(end >= MAG_HEADER_BYTES);
        attempt->end = end;
        return ZT_OK;
    }
    if (status == ZT_INVALID) {
        if (furthest->status == ZT_OK || failure.offset > furthest->offset)
            *furthest = failure;
        return ZT_OK;
    }
    if (error != NULL)
        *error = failure;
    return status;
}

static enum zt_status fail_all(const struct attempt attempts[LAYOUT_COUNT],
                               const struct zt_error *furthest, struct zt_error *error)
{
    bool first = attempts[0].end != 0;
    bool second = attempts[1].end != 0;

    if (first || second)
        return zt_fail(error, ZT_INVALID, "mag §Header Checksum", MAG_CHECKSUM_AT,
                       "the records are valid in %s%s%s, but the checksum does not match them",
                       first ? layouts[0]->name : "", first && second ? " and in " : "",
                       second ? layouts[1]->name : "");
    assert(furthest->status == ZT_INVALID);
    if (error != NULL)
        *error = *furthest;
    return ZT_INVALID;
}

static enum zt_status open_version_1(const struct mag_header *header, struct zt_source *source,
                                     struct zt_model **out_model, struct zt_error *error)
{
    struct attempt attempts[LAYOUT_COUNT];
    struct zt_error furthest = {.status = ZT_OK};
    struct zt_error failure;
    enum zt_status status = ZT_OK;

    for (size_t i = 0; i < LAYOUT_COUNT && status == ZT_OK; i++) {
        attempts[i] = (struct attempt){.layout = layouts[i], .header = header};
        status = measure(&attempts[i], source, &furthest, error);
    }
    if (status != ZT_OK)
        return status;
    for (size_t i = 0; i < LAYOUT_COUNT; i++) {
        if (attempts[i].end == 0)
            continue;
        status = zt_reader_open(&reader, &attempts[i], source, out_model, &failure);
        if (attempts[i].has_other_checksum)
            continue;
        if (status != ZT_OK && error != NULL)
            *error = failure;
        return status;
    }
    return fail_all(attempts, &furthest, error);
}

/* --- all of them --- */

static enum zt_status open_snapshot(uint32_t version, struct zt_source *source,
                                    struct zt_model **out_model, struct zt_error *error)
{
    uint8_t head[MAG_SNAPSHOT_HEAD_BYTES];
    uint64_t size = zt_source_size(source);
    enum zt_status status;

    if (size < sizeof(head))
        return zt_fail(error, ZT_INVALID, "mag §Header FileTooSmall", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", size);
    status = zt_source_read_at(source, 0, head, sizeof(head), error);
    if (status != ZT_OK)
        return status;
    if (!mag_is_snapshot(head))
        return zt_fail(error, ZT_UNSUPPORTED, NULL, 4,
                       "the content is .mag of version %" PRIu32
                       " but not a snapshot; no release of magnetron wrote such files",
                       version);
    return mag_snapshot_open(version, source, out_model, error);
}

enum zt_status mag_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error)
{
    struct mag_header header;
    enum zt_status status = mag_header_read(source, &header, error);

    if (status != ZT_OK)
        return status;
    if (header.version == MAG_VERSION_100 || header.version == MAG_VERSION_200)
        return open_snapshot(header.version, source, out_model, error);
    if (header.version == MAG_VERSION_300)
        return mag_json_open(source, out_model, error);
    if (header.version != MAG_VERSION_1)
        return zt_fail(error, ZT_INVALID, "mag §Header Version", 4,
                       "version %" PRIu32 ", known are 1, 100, 200 and 300", header.version);
    if (header.reserved != 0)
        return zt_fail(error, ZT_INVALID, "mag §Header Reserved", MAG_RESERVED_AT,
                       "the reserved word is not 0");
    return open_version_1(&header, source, out_model, error);
}
