/* A zt.zstd-seekable/1 component as a source of its decoded bytes (zTensor 2 section 6).
 *
 * All frames but the last are of one length, so a position tells its frame. A frame that is wanted
 * whole is decoded straight into the caller's memory. One that is wanted in part goes into the kept
 * frame, where a reader going forward finds it again; when another thread is busy there, into
 * memory of this call's own. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/source_range.h"
#include "zt/decode.h"

#define NO_FRAME UINT32_MAX

struct frames_source {
    struct zt_source base;
    struct zt_source *stored;
    struct zt_frames frames;
    uint64_t decoded_length;
    /* Held, never waited for, by the one thread that may touch what follows. */
    atomic_flag is_busy;
    uint32_t kept_index;
    uint8_t *kept; /* NULL until it is needed; as long as the first frame, which is the longest */
};

/* What of a frame goes where. */
struct portion {
    uint32_t index;
    uint32_t within;
    size_t length;
    uint8_t *to;
};

static enum zt_status fail_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a frame");
}

static bool is_whole(const struct frames_source *source, const struct portion *portion)
{
    return portion->length == source->frames.frames[portion->index].decoded_length;
}

static enum zt_status decode(const struct frames_source *source, uint32_t index, uint8_t *to,
                             struct zt_error *error)
{
    return zt_frame_decode(&source->frames.frames[index], source->stored, to, error);
}

/* For the thread that has it: puts a frame where it is kept. */
static enum zt_status keep(struct frames_source *source, uint32_t index, struct zt_error *error)
{
    enum zt_status status;

    if (source->kept_index == index)
        return ZT_OK;
    if (source->kept == NULL)
        source->kept = malloc(source->frames.frames[0].decoded_length);
    if (source->kept == NULL)
        return fail_memory(error);
    source->kept_index = NO_FRAME;
    status = decode(source, index, source->kept, error);
    if (status == ZT_OK)
        source->kept_index = index;
    return status;
}

static enum zt_status take_kept(struct frames_source *source, const struct portion *portion,
                                struct zt_error *error)
{
    enum zt_status status;

    if (is_whole(source, portion) && source->kept_index != portion->index)
        return decode(source, portion->index, portion->to, error);
    status = keep(source, portion->index, error);
    if (status == ZT_OK)
        memcpy(portion->to, source->kept + portion->within, portion->length);
    return status;
}

/* Without the kept frame. */
static enum zt_status take_alone(const struct frames_source *source, const struct portion *portion,
                                 struct zt_error *error)
{
    uint8_t *decoded;
    enum zt_status status;

    if (is_whole(source, portion))
        return decode(source, portion->index, portion->to, error);
    decoded = malloc(source->frames.frames[portion->index].decoded_length);
    if (decoded == NULL)
        return fail_memory(error);
    status = decode(source, portion->index, decoded, error);
    if (status == ZT_OK)
        memcpy(portion->to, decoded + portion->within, portion->length);
    free(decoded);
    return status;
}

static enum zt_status take(struct frames_source *source, const struct portion *portion,
                           struct zt_error *error)
{
    enum zt_status status;

    if (atomic_flag_test_and_set_explicit(&source->is_busy, memory_order_acquire))
        return take_alone(source, portion, error);
    status = take_kept(source, portion, error);
    atomic_flag_clear_explicit(&source->is_busy, memory_order_release);
    return status;
}

/* The portion of the frame at offset; there is at least one byte. */
static struct portion portion_at(const struct frames_source *source, uint64_t offset, uint8_t *to,
                                 size_t length)
{
    uint32_t frame_length = source->frames.frames[0].decoded_length;
    struct portion portion = {.index = (uint32_t)(offset / frame_length),
                              .within = (uint32_t)(offset % frame_length),
                              .to = to};
    size_t rest = source->frames.frames[portion.index].decoded_length - portion.within;

    portion.length = rest < length ? rest : length;
    return portion;
}

static uint64_t frames_size(const struct zt_source *source)
{
    return ((const struct frames_source *)source)->decoded_length;
}

static enum zt_status frames_read_at(struct zt_source *base, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    struct frames_source *source = (struct frames_source *)base;
    uint8_t *to = buffer;
    enum zt_status status = zt_source_check_range(source->decoded_length, offset, length, error);

    while (status == ZT_OK && length > 0) {
        struct portion portion = portion_at(source, offset, to, length);

        status = take(source, &portion, error);
        offset += portion.length;
        to += portion.length;
        length -= portion.length;
    }
    return status;
}

static const uint8_t *frames_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void frames_close(struct zt_source *base)
{
    struct frames_source *source = (struct frames_source *)base;

    zt_frames_free(&source->frames);
    free(source->kept);
    free(source);
}

enum zt_status zt_frames_source(const struct zt_component *component, struct zt_source *source,
                                struct zt_source **out_source, struct zt_error *error)
{
    static const struct zt_source_ops ops = {frames_size, frames_read_at, frames_map, frames_close};
    struct frames_source *made = calloc(1, sizeof(*made));
    enum zt_status status;

    if (made == NULL)
        return fail_memory(error);
    status = zt_frames_read(component, source, &made->frames, error);
    if (status != ZT_OK) {
        free(made);
        return status;
    }
    made->base.ops = &ops;
    made->stored = source;
    /* What the frames add up to: the seek table's rules make sure of it. */
    made->decoded_length = component->decoded_length;
    atomic_flag_clear(&made->is_busy);
    made->kept_index = NO_FRAME;
    *out_source = &made->base;
    return ZT_OK;
}
