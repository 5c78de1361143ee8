/* Images: the list of pieces that every target's layout fills, and looking a position up in it. */
#include "zt/file_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/extents.h"
#include "write/planning.h"

#define SMALLEST_CAPACITY 16

enum zt_status zt_write_no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a file's layout");
}

bool zt_target_fingerprint(enum zt_target target, enum zt_digest_algorithm *out_algorithm)
{
    switch (target) {
    case ZT_TARGET_ZT1:
        *out_algorithm = ZT_DIGEST_SHA256;
        return true;
    case ZT_TARGET_ZT2_CANONICAL:
    case ZT_TARGET_ZT2:
        *out_algorithm = ZT_DIGEST_XXH3;
        return true;
    case ZT_TARGET_NPZ:
        *out_algorithm = ZT_DIGEST_CRC32;
        return true;
    default:
        return false;
    }
}

/* --- pieces --- */

static enum zt_status add_piece(struct zt_planning *planning, const struct zt_piece *piece)
{
    struct zt_file_plan *plan = planning->plan;

    if (piece->length == 0)
        return ZT_OK;
    assert(piece->offset >= plan->length);
    if (plan->piece_count == planning->piece_capacity) {
        size_t capacity =
            planning->piece_capacity == 0 ? SMALLEST_CAPACITY : planning->piece_capacity * 2;
        struct zt_piece *pieces = realloc(plan->pieces, capacity * sizeof(*pieces));

        if (pieces == NULL)
            return zt_write_no_memory(planning->error);
        plan->pieces = pieces;
        planning->piece_capacity = capacity;
    }
    plan->pieces[plan->piece_count++] = *piece;
    plan->length = piece->offset + piece->length;
    return ZT_OK;
}

enum zt_status zt_planning_add(struct zt_planning *planning, uint64_t offset, const void *bytes,
                               size_t length)
{
    struct zt_piece piece = {
        .offset = offset, .length = length, .added_at = planning->added.length};

    zt_buffer_append(&planning->added, bytes, length);
    if (planning->added.failed)
        return zt_write_no_memory(planning->error);
    return add_piece(planning, &piece);
}

enum zt_status zt_planning_component(struct zt_planning *planning, uint64_t offset,
                                     uint32_t component)
{
    const struct zt_component *part = &planning->projection->model->components[component];
    uint64_t length = planning->fingerprints != NULL ? planning->fingerprints[component].length
                                                     : part->decoded_length;

    return add_piece(planning, &(struct zt_piece){.offset = offset,
                                                  .length = length,
                                                  .component = component,
                                                  .is_component = true});
}

static enum zt_status name_part(const struct zt_planning *planning, const struct zt_component *part,
                                enum zt_status status)
{
    zt_error_at(planning->error,
                zt_object_name(zt_component_owner(planning->projection->model, part)),
                zt_component_name(part));
    return status;
}

enum zt_status zt_planning_place(struct zt_planning *planning, uint64_t *offset, uint32_t component,
                                 uint64_t alignment)
{
    const struct zt_component *part = &planning->projection->model->components[component];
    uint64_t length = planning->fingerprints != NULL ? planning->fingerprints[component].length
                                                     : part->decoded_length;

    if (length == ZT_LENGTH_UNKNOWN)
        return name_part(planning, part,
                         zt_fail(planning->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                                 "the decoded length is not known before decoding"));
    if (length > INT64_MAX || *offset > (uint64_t)INT64_MAX - length - alignment)
        return name_part(planning, part,
                         zt_fail(planning->error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                                 "a file of more than 2^63 bytes"));
    *offset = zt_align(*offset, alignment);
    return ZT_OK;
}

/* --- the whole --- */

static enum zt_status make(struct zt_planning *planning)
{
    switch (planning->projection->target) {
    case ZT_TARGET_ZT1:
        return zt1_plan(planning);
    case ZT_TARGET_ZT2_CANONICAL:
    case ZT_TARGET_ZT2:
        return zt2_plan(planning);
    case ZT_TARGET_MAG:
        return mag_plan(planning);
    case ZT_TARGET_SAFETENSORS:
        return safetensors_plan(planning);
    case ZT_TARGET_NPZ:
        return npz_plan(planning);
    case ZT_TARGET_NPY:
        return npy_plan(planning);
    }
    return zt_fail(planning->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "no such target");
}

enum zt_status zt_file_plan_make(const struct zt_projection *projection,
                                 const struct zt_fingerprint *fingerprints,
                                 struct zt_file_plan **out_image, struct zt_error *error)
{
    struct zt_planning planning = {
        .projection = projection, .fingerprints = fingerprints, .error = error};
    enum zt_digest_algorithm algorithm;
    enum zt_status status;

    if (fingerprints == NULL && zt_target_fingerprint(projection->target, &algorithm))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "%s states digests, which were not given",
                       zt_target_name(projection->target));
    planning.plan = calloc(1, sizeof(*planning.plan));
    if (planning.plan == NULL)
        return zt_write_no_memory(error);
    status = make(&planning);
    if (status != ZT_OK) {
        zt_buffer_free(&planning.added);
        zt_file_plan_free(planning.plan);
        return status;
    }
    planning.plan->added = planning.added.bytes;
    *out_image = planning.plan;
    return ZT_OK;
}

size_t zt_file_plan_find(const struct zt_file_plan *plan, uint64_t offset)
{
    size_t low = 0;
    size_t high = plan->piece_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct zt_piece *piece = &plan->pieces[middle];

        if (piece->offset + piece->length <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void zt_file_plan_free(struct zt_file_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->pieces);
    free(plan->added);
    free(plan);
}

/* --- numbers --- */

static void put_le(struct zt_buffer *buffer, uint64_t value, unsigned width)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    zt_buffer_append(buffer, bytes, width);
}

void zt_put_le16(struct zt_buffer *buffer, uint16_t value)
{
    put_le(buffer, value, 2);
}

void zt_put_le32(struct zt_buffer *buffer, uint32_t value)
{
    put_le(buffer, value, 4);
}

void zt_put_le64(struct zt_buffer *buffer, uint64_t value)
{
    put_le(buffer, value, 8);
}
