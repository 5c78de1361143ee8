/* Images: the list of pieces that every target's layout fills, and looking a position up in it. */
#include "zt/image.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/extents.h"
#include "write/formats.h"

#define SMALLEST_CAPACITY 16

enum zt_status zt_write_no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a file's layout");
}

bool zt_target_fact(enum zt_target target, enum zt_digest_algorithm *out_algorithm)
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

static enum zt_status add_piece(struct zt_imaging *imaging, const struct zt_piece *piece)
{
    struct zt_image *image = imaging->image;

    if (piece->length == 0)
        return ZT_OK;
    assert(piece->offset >= image->length);
    if (image->piece_count == imaging->piece_capacity) {
        size_t capacity =
            imaging->piece_capacity == 0 ? SMALLEST_CAPACITY : imaging->piece_capacity * 2;
        struct zt_piece *pieces = realloc(image->pieces, capacity * sizeof(*pieces));

        if (pieces == NULL)
            return zt_write_no_memory(imaging->error);
        image->pieces = pieces;
        imaging->piece_capacity = capacity;
    }
    image->pieces[image->piece_count++] = *piece;
    image->length = piece->offset + piece->length;
    return ZT_OK;
}

enum zt_status zt_imaging_add(struct zt_imaging *imaging, uint64_t offset, const void *bytes,
                              size_t length)
{
    struct zt_piece piece = {.offset = offset, .length = length, .added_at = imaging->added.length};

    zt_buffer_append(&imaging->added, bytes, length);
    if (imaging->added.failed)
        return zt_write_no_memory(imaging->error);
    return add_piece(imaging, &piece);
}

enum zt_status zt_imaging_component(struct zt_imaging *imaging, uint64_t offset, uint32_t component)
{
    const struct zt_component *part = &imaging->projection->model->components[component];
    uint64_t length =
        imaging->facts != NULL ? imaging->facts[component].length : part->decoded_length;

    return add_piece(imaging, &(struct zt_piece){.offset = offset,
                                                 .length = length,
                                                 .component = component,
                                                 .is_component = true});
}

static enum zt_status name_part(const struct zt_imaging *imaging, const struct zt_component *part,
                                enum zt_status status)
{
    zt_error_at(imaging->error,
                zt_object_name(zt_component_owner(imaging->projection->model, part)),
                zt_component_name(part));
    return status;
}

enum zt_status zt_imaging_place(struct zt_imaging *imaging, uint64_t *offset, uint32_t component,
                                uint64_t alignment)
{
    const struct zt_component *part = &imaging->projection->model->components[component];
    uint64_t length =
        imaging->facts != NULL ? imaging->facts[component].length : part->decoded_length;

    if (length == ZT_LENGTH_UNKNOWN)
        return name_part(imaging, part,
                         zt_fail(imaging->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                                 "the decoded length is not known before decoding"));
    if (length > INT64_MAX || *offset > (uint64_t)INT64_MAX - length - alignment)
        return name_part(imaging, part,
                         zt_fail(imaging->error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                                 "a file of more than 2^63 bytes"));
    *offset = zt_align(*offset, alignment);
    return ZT_OK;
}

/* --- the whole --- */

static enum zt_status make(struct zt_imaging *imaging)
{
    switch (imaging->projection->target) {
    case ZT_TARGET_ZT1:
        return zt1_image(imaging);
    case ZT_TARGET_ZT2_CANONICAL:
    case ZT_TARGET_ZT2:
        return zt2_image(imaging);
    case ZT_TARGET_MAG:
        return mag_image(imaging);
    case ZT_TARGET_SAFETENSORS:
        return safetensors_image(imaging);
    case ZT_TARGET_NPZ:
        return npz_image(imaging);
    case ZT_TARGET_NPY:
        return npy_image(imaging);
    }
    return zt_fail(imaging->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "no such target");
}

enum zt_status zt_image_make(const struct zt_projection *projection, const struct zt_fact *facts,
                             struct zt_image **out_image, struct zt_error *error)
{
    struct zt_imaging imaging = {.projection = projection, .facts = facts, .error = error};
    enum zt_digest_algorithm algorithm;
    enum zt_status status;

    if (facts == NULL && zt_target_fact(projection->target, &algorithm))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "%s states digests, which were not given",
                       zt_target_name(projection->target));
    imaging.image = calloc(1, sizeof(*imaging.image));
    if (imaging.image == NULL)
        return zt_write_no_memory(error);
    status = make(&imaging);
    if (status != ZT_OK) {
        zt_buffer_free(&imaging.added);
        zt_image_free(imaging.image);
        return status;
    }
    imaging.image->added = imaging.added.bytes;
    *out_image = imaging.image;
    return ZT_OK;
}

size_t zt_image_find(const struct zt_image *image, uint64_t offset)
{
    size_t low = 0;
    size_t high = image->piece_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct zt_piece *piece = &image->pieces[middle];

        if (piece->offset + piece->length <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void zt_image_free(struct zt_image *image)
{
    if (image == NULL)
        return;
    free(image->pieces);
    free(image->added);
    free(image);
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
