/* File plans: the list of pieces that each target's planner fills, looking up a position in it, and
 * the planned file as a source. */
#include "zt/file_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bytes/source_range.h"
#include "model/locate.h"
#include "write/planning.h"

#define MEMORY_PURPOSE "a file plan"

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

static enum zt_status fail_length(const struct zt_planning *planning)
{
    return zt_fail(planning->error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "a file of 2^63 bytes or more");
}

static enum zt_status add_piece(struct zt_planning *planning, const struct zt_piece *piece)
{
    struct zt_file_plan *plan = planning->plan;

    if (piece->length == 0)
        return ZT_OK;
    assert(piece->offset >= plan->length);
    if (piece->offset > INT64_MAX || piece->length > (uint64_t)INT64_MAX - piece->offset)
        return fail_length(planning);
    if (zt_array_reserve(&plan->pieces, &planning->piece_capacity, plan->piece_count + 1,
                         sizeof(*plan->pieces), SIZE_MAX) != ZT_OK)
        return zt_fail_memory(planning->error, MEMORY_PURPOSE);
    plan->pieces[plan->piece_count++] = *piece;
    plan->length = piece->offset + piece->length;
    return ZT_OK;
}

enum zt_status zt_planning_add(struct zt_planning *planning, uint64_t offset,
                               const struct zt_buffer *bytes)
{
    struct zt_piece piece = {
        .offset = offset, .length = bytes->length, .added_at = planning->added.length};

    zt_buffer_append(&planning->added, bytes->bytes, bytes->length);
    if (bytes->failed || planning->added.failed)
        return zt_fail_memory(planning->error, MEMORY_PURPOSE);
    return add_piece(planning, &piece);
}

static uint64_t length_of(const struct zt_planning *planning, uint32_t component)
{
    assert(component < planning->projection->model->component_count);
    if (planning->fingerprints != NULL)
        return planning->fingerprints[component].length;
    return planning->projection->model->components[component].decoded_length;
}

static enum zt_status name_component(const struct zt_planning *planning, uint32_t component,
                                     enum zt_status status)
{
    const struct zt_model *outline = planning->projection->model;
    const struct zt_component *part = &outline->components[component];

    assert(component < outline->component_count);
    if (status != ZT_OK)
        zt_error_at(planning->error, zt_object_name(zt_component_owner(outline, part)),
                    zt_component_name(part));
    return status;
}

enum zt_status zt_planning_component(struct zt_planning *planning, uint64_t offset,
                                     uint32_t component)
{
    struct zt_piece piece = {.offset = offset,
                             .length = length_of(planning, component),
                             .component = component,
                             .is_component = true};

    return name_component(planning, component, add_piece(planning, &piece));
}

enum zt_status zt_planning_place(struct zt_planning *planning, uint64_t *offset, uint32_t component,
                                 uint64_t alignment)
{
    uint64_t length = length_of(planning, component);
    enum zt_status status = ZT_OK;

    assert(*offset <= INT64_MAX);
    if (length == ZT_LENGTH_UNKNOWN)
        status = zt_fail(planning->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                         "the decoded length is unknown before decoding");
    else if (length > INT64_MAX || zt_align(*offset, alignment) > (uint64_t)INT64_MAX - length)
        status = fail_length(planning);
    if (status == ZT_OK)
        *offset = zt_align(*offset, alignment);
    return name_component(planning, component, status);
}

/* --- the whole --- */

static enum zt_status plan_target(struct zt_planning *planning)
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
                                 struct zt_file_plan **out_plan, struct zt_error *error)
{
    struct zt_planning planning = {
        .projection = projection, .fingerprints = fingerprints, .error = error};
    enum zt_digest_algorithm algorithm;
    enum zt_status status;

    if (fingerprints == NULL && zt_target_fingerprint(projection->target, &algorithm))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "%s states digests, but no fingerprints were given",
                       zt_target_name(projection->target));
    planning.plan = calloc(1, sizeof(*planning.plan));
    if (planning.plan == NULL)
        return zt_fail_memory(error, MEMORY_PURPOSE);
    status = plan_target(&planning);
    planning.plan->added = planning.added.bytes;
    if (status != ZT_OK) {
        zt_file_plan_free(planning.plan);
        return status;
    }
    *out_plan = planning.plan;
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
    assert(low == high);
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

/* --- the planned file as a source --- */

struct plan_source {
    struct zt_source base;
    const struct zt_file_plan *plan;
    struct zt_component_bytes bytes;
};

/* A range of the file that lies inside one piece. */
struct range {
    uint64_t offset;
    size_t length;
};

static uint64_t plan_size(const struct zt_source *source)
{
    return ((const struct plan_source *)source)->plan->length;
}

static enum zt_status read_piece(const struct plan_source *source, const struct zt_piece *piece,
                                 struct range range, uint8_t *buffer, struct zt_error *error)
{
    uint64_t within = range.offset - piece->offset;

    assert(within <= piece->length && range.length <= piece->length - within);
    if (piece->is_component)
        return source->bytes.read(source->bytes.context, piece->component, within, buffer,
                                  range.length, error);
    memcpy(buffer, source->plan->added + piece->added_at + within, range.length);
    return ZT_OK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static enum zt_status plan_read_at(struct zt_source *base, uint64_t offset, void *buffer,
                                   size_t length, struct zt_error *error)
{
    const struct plan_source *source = (const struct plan_source *)base;
    const uint64_t end = offset + length;
    enum zt_status status = zt_source_check_range(source->plan->length, offset, length, error);
    size_t number = status == ZT_OK ? zt_file_plan_find(source->plan, offset) : 0;

    for (uint8_t *at = buffer; status == ZT_OK && offset < end; number++) {
        const struct zt_piece *piece = &source->plan->pieces[number];
        struct range range;
        size_t gap;

        /* The plan ends with its last piece. */
        assert(number < source->plan->piece_count);
        gap = offset < piece->offset ? (size_t)(least(piece->offset, end) - offset) : 0;
        if (gap > 0)
            memset(at, 0, gap);
        range.offset = offset + gap;
        range.length = (size_t)(least(piece->offset + piece->length, end) - range.offset);
        if (range.length > 0)
            status = read_piece(source, piece, range, at + gap, error);
        at += gap + range.length;
        offset = range.offset + range.length;
    }
    return status;
}

static const uint8_t *plan_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void plan_close(struct zt_source *source)
{
    free(source);
}

enum zt_status zt_file_plan_source(const struct zt_file_plan *plan,
                                   const struct zt_component_bytes *bytes,
                                   struct zt_source **out_source, struct zt_error *error)
{
    static const struct zt_source_ops ops = {
        .size = plan_size, .read_at = plan_read_at, .map = plan_map, .close = plan_close};
    struct plan_source *source = calloc(1, sizeof(*source));

    if (source == NULL)
        return zt_fail_memory(error, MEMORY_PURPOSE);
    source->base.ops = &ops;
    source->plan = plan;
    source->bytes = *bytes;
    *out_source = &source->base;
    return ZT_OK;
}
