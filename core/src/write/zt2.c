/* zTensor 2: data and then the manifest at multiples of 64 KiB, followed directly by the footer
 * (sections 1, 7).
 *
 * In canonical form, parts with the same bytes share one blob, and empty parts take no space: they
 * state the place of the next blob. */
#include <assert.h>

#include "model/zt2_encode.h"
#include "write/container.h"

#define PACKING 65536
#define VERSION 2

static enum zt_status place_part(struct zt_planning *planning, struct zt_placed *placed,
                                 uint32_t number, uint64_t *offset);
static enum zt_status put_end(const struct zt_model *model, uint64_t offset,
                              struct zt_buffer *buffer, struct zt_error *error);

const struct zt_container zt2_container = {
    .magic = {0x89, 'Z', 'T', '2', '\r', '\n', 0x1A, '\n'},
    .data_alignment = PACKING,
    .manifest_alignment = PACKING,
    .digest = ZT_DIGEST_XXH3,
    .digest_covers_stored = false,
    .encoding = ZT_ENCODING_ZSTD_SEEKABLE,
    .encoding_name = "zt.zstd-seekable/1",
    .layouts = ZT_LAYOUTS_ZT2,
    .place = place_part,
    .put_end = put_end,
};

static enum zt_status take_piece(void *context, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    struct zt_buffer *buffer = context;

    zt_buffer_append(buffer, bytes, length);
    return buffer->failed ? zt_fail_memory(error, "a manifest") : ZT_OK;
}

static enum zt_status put_manifest(const struct zt_model *model, struct zt_buffer *buffer,
                                   struct zt_error *error)
{
    enum zt_status status;

    zt_cbor_put_map(buffer, model->attributes.length > 0 ? 2 : 1);
    zt_cbor_put_string(buffer, "objects");
    status = zt2_encode_objects(model, ZT2_VIEW_MANIFEST,
                                &(struct zt_sink){.take = take_piece, .context = buffer}, error);
    if (model->attributes.length > 0) {
        zt_cbor_put_string(buffer, "attributes");
        zt_buffer_append(buffer, model->attributes.bytes, model->attributes.length);
    }
    return status != ZT_OK || buffer->failed ? zt_fail_memory(error, "a manifest") : ZT_OK;
}

static enum zt_status put_end(const struct zt_model *model, uint64_t offset,
                              struct zt_buffer *buffer, struct zt_error *error)
{
    size_t begin = buffer->length;
    enum zt_status status = put_manifest(model, buffer, error);
    uint64_t length;
    uint64_t hash;

    if (status != ZT_OK)
        return status;
    assert(buffer->length > begin && offset % PACKING == 0);
    length = buffer->length - begin;
    hash = zt_xxh3(buffer->bytes + begin, (size_t)length);
    zt_buffer_append_le64(buffer, offset);
    zt_buffer_append_le64(buffer, length);
    zt_buffer_append_le64(buffer, hash);
    zt_buffer_append_le32(buffer, VERSION);
    zt_buffer_append_le32(buffer, 0);
    zt_buffer_append(buffer, zt2_container.magic, sizeof(zt2_container.magic));
    return buffer->failed ? zt_fail_memory(error, "a manifest")
                          : zt_check_manifest_length(length, error);
}

static enum zt_status place_part(struct zt_planning *planning, struct zt_placed *placed,
                                 uint32_t number, uint64_t *offset)
{
    const struct zt_fingerprint *fingerprint = &planning->fingerprints[number];
    struct zt_component *part = &placed->components[number];
    enum zt_status status = zt_planning_place(planning, offset, number, PACKING);

    if (status != ZT_OK)
        return status;
    part->length = fingerprint->length;
    part->decoded_length = fingerprint->length;
    zt_placed_set_digest(placed, number, &fingerprint->digest);
    if (fingerprint->same_as != number && fingerprint->length > 0) {
        assert(planning->fingerprints[fingerprint->same_as].length == fingerprint->length);
        part->offset = placed->components[fingerprint->same_as].offset;
        assert(part->offset > 0 && part->offset % PACKING == 0);
        return ZT_OK;
    }
    part->offset = *offset;
    *offset += part->length;
    return zt_planning_component(planning, part->offset, number);
}

enum zt_status zt2_plan(struct zt_planning *planning)
{
    return zt_container_plan(&zt2_container, planning);
}
