/* Slices as sources: reading gathers the runs of a slice.
 *
 * Runs that are close together are read with the gaps between them into a window, and copied from
 * there. Long runs, and runs that are far apart, are read one at a time into the caller's buffer.
 * If the program allows it and the file is in the page cache, runs are copied from its mapping
 * instead. The window is on the stack, so reading allocates nothing and threads share nothing. */
#include "zt/slice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/resident.h"
#include "bytes/source_range.h"
#include "model/slice_walk.h"

/* Fits into the second-level cache; reading this much takes far longer than the system call
 * itself. */
#define WINDOW_BYTES ((size_t)64 << 10)
/* Reading this many unneeded bytes costs about as much as another system call. */
#define BRIDGED_BYTES 8192
/* Runs of one read that are looked up in the page cache before it copies from a mapping. */
#define LOOKED_UP 8u
/* Copying a byte again costs half as much as reading it. */
#define EXTRA_COPY_DIVISOR 2

/* The state of one read: the current run, and the bytes in the window. */
struct gathering {
    const struct slice_source *source;
    struct slice_walk walk;
    uint8_t *out;
    uint64_t left;
    uint64_t end; /* after the last byte wanted, in the tensor */
    uint8_t *window;
    uint64_t window_at;
    uint64_t window_length;
    struct zt_error *error;
};

/* --- copying out of the window --- */

/* With a constant length each copy takes one or two instructions. */
#define COPY_RUNS(length_)                                             \
    do {                                                               \
        for (uint64_t i = 0; i < count; i++)                           \
            memcpy(out + i * (length_), from + i * stride, (length_)); \
    } while (0)

static void copy_runs(uint8_t *restrict out, const uint8_t *restrict from, uint64_t count,
                      uint64_t stride, uint64_t run_bytes)
{
    switch (run_bytes) {
    case 1:
        COPY_RUNS(1);
        break;
    case 2:
        COPY_RUNS(2);
        break;
    case 4:
        COPY_RUNS(4);
        break;
    case 8:
        COPY_RUNS(8);
        break;
    case 16:
        COPY_RUNS(16);
        break;
    default:
        COPY_RUNS(run_bytes);
        break;
    }
}

/* --- reading --- */

static enum zt_status read_tensor(struct gathering *gathering, uint64_t at, void *buffer,
                                  uint64_t length)
{
    return zt_source_read_at(gathering->source->tensor, gathering->source->tensor_base + at, buffer,
                             (size_t)length, gathering->error);
}

/* Reads a run, or part of it, into the caller's buffer. */
static enum zt_status take_directly(struct gathering *gathering)
{
    uint64_t rest = gathering->source->slice.run_bytes - gathering->walk.within;
    uint64_t length = rest < gathering->left ? rest : gathering->left;
    enum zt_status status =
        read_tensor(gathering, gathering->walk.at + gathering->walk.within, gathering->out, length);

    assert(gathering->walk.within < gathering->source->slice.run_bytes);
    if (status != ZT_OK)
        return status;
    gathering->out += length;
    gathering->left -= length;
    gathering->walk.within = 0;
    slice_walk_advance(&gathering->walk, 1);
    return ZT_OK;
}

/* The number of bytes, from the current run on, to read into the window: at most to the end of this
 * pass over the dense loops and of the requested bytes. */
static uint64_t reach(const struct gathering *gathering)
{
    const struct slice_source *source = gathering->source;
    uint64_t length = source->dense_extent;

    for (unsigned i = source->first_dense_loop; i < source->slice.loop_count; i++)
        length -= gathering->walk.positions[i] * source->slice.loops[i].stride_bytes;
    assert(length > 0 && gathering->walk.at < gathering->end);
    if (length > gathering->end - gathering->walk.at)
        length = gathering->end - gathering->walk.at;
    return length < WINDOW_BYTES ? length : WINDOW_BYTES;
}

static bool is_in_window(const struct gathering *gathering)
{
    return gathering->walk.at >= gathering->window_at &&
           gathering->walk.at + gathering->source->slice.run_bytes <=
               gathering->window_at + gathering->window_length;
}

static enum zt_status fill_window(struct gathering *gathering)
{
    uint64_t length = reach(gathering);
    enum zt_status status;

    gathering->window_length = 0;
    status = read_tensor(gathering, gathering->walk.at, gathering->window, length);
    if (status != ZT_OK)
        return status;
    gathering->window_at = gathering->walk.at;
    gathering->window_length = length;
    return ZT_OK;
}

/* Copies whole runs of the innermost loop, as many as are requested and in the window. */
static enum zt_status take_from_window(struct gathering *gathering)
{
    const struct zt_slice *slice = &gathering->source->slice;
    unsigned last = slice_walk_last_loop(&gathering->walk);
    uint64_t stride = slice->loops[last].stride_bytes;
    uint64_t runs = slice->loops[last].count - gathering->walk.positions[last];
    uint64_t wanted = gathering->left / slice->run_bytes;
    uint64_t in_window, room;
    enum zt_status status = is_in_window(gathering) ? ZT_OK : fill_window(gathering);

    if (status != ZT_OK)
        return status;
    assert(is_in_window(gathering));
    room = gathering->window_at + gathering->window_length - gathering->walk.at - slice->run_bytes;
    runs = wanted < runs ? wanted : runs;
    /* Rows of small tensors usually fit whole into the window, which saves a division. */
    if ((runs - 1) * stride > room) {
        in_window = room / stride + 1;
        runs = in_window < runs ? in_window : runs;
    }
    copy_runs(gathering->out, gathering->window + (gathering->walk.at - gathering->window_at), runs,
              stride, slice->run_bytes);
    assert(runs > 0 && runs <= wanted);
    gathering->out += runs * slice->run_bytes;
    gathering->left -= runs * slice->run_bytes;
    slice_walk_advance(&gathering->walk, runs);
    return ZT_OK;
}

/* Not inlined, so that reading a slice of one run does not take the window's stack. */
__attribute__((noinline)) static enum zt_status gather(const struct slice_source *source,
                                                       uint64_t offset, uint8_t *buffer,
                                                       size_t length, struct zt_error *error)
{
    uint8_t window[WINDOW_BYTES];
    struct gathering gathering = {
        .source = source,
        .walk = {.slice = &source->slice},
        .out = buffer,
        .left = length,
        .window = window,
        .error = error,
    };
    bool is_dense = source->first_dense_loop < source->slice.loop_count;
    enum zt_status status = ZT_OK;

    slice_walk_seek(&gathering.walk, offset + length - 1);
    gathering.end = gathering.walk.at + gathering.walk.within + 1;
    slice_walk_seek(&gathering.walk, offset);
    while (status == ZT_OK && gathering.left > 0) {
        bool is_partial = gathering.walk.within > 0 || gathering.left < source->slice.run_bytes;

        status = is_partial || !is_dense ? take_directly(&gathering) : take_from_window(&gathering);
    }
    return status;
}

/* --- copying from a mapping --- */

/* What is between gathering.walk.at and the buffer: at most one run, or as many whole runs of the
 * innermost loop as are wanted. */
static void copy_next(struct gathering *gathering, const uint8_t *tensor)
{
    const struct zt_slice *slice = &gathering->source->slice;
    const unsigned last = slice_walk_last_loop(&gathering->walk);
    uint64_t runs = slice->loops[last].count - gathering->walk.positions[last];
    uint64_t length = slice->run_bytes - gathering->walk.within;

    assert(gathering->left > 0);
    if (gathering->walk.within > 0 || gathering->left < length) {
        length = gathering->left < length ? gathering->left : length;
        memcpy(gathering->out, tensor + gathering->walk.at + gathering->walk.within,
               (size_t)length);
        runs = 1;
    } else {
        runs = gathering->left / length < runs ? gathering->left / length : runs;
        copy_runs(gathering->out, tensor + gathering->walk.at, runs,
                  slice->loops[last].stride_bytes, length);
        length *= runs;
    }
    gathering->out += length;
    gathering->left -= length;
    gathering->walk.within = 0;
    slice_walk_advance(&gathering->walk, runs);
}

static void copy_all(void *context)
{
    struct gathering *gathering = context;

    while (gathering->left > 0)
        copy_next(gathering, gathering->window);
}

/* Whether a few of the runs that a read copies are in the page cache. If they are and others are
 * not, the read is slower, but right. */
static bool seems_resident(struct gathering *gathering, const uint8_t *tensor, uint64_t offset)
{
    assert(gathering->left > 0);
    for (unsigned i = 0; i <= LOOKED_UP; i++) {
        slice_walk_seek(&gathering->walk, offset + (gathering->left - 1) / LOOKED_UP * i);
        if (!zt_is_resident(tensor + gathering->walk.at + gathering->walk.within, 1))
            return false;
    }
    return true;
}

/* False: the bytes must be read, into the same buffer. */
static bool gather_mapped(const struct slice_source *source, uint64_t offset, uint8_t *buffer,
                          size_t length)
{
    struct gathering gathering = {
        .source = source, .walk = {.slice = &source->slice}, .out = buffer, .left = length};
    const uint64_t end = zt_source_size(source->tensor);
    const uint8_t *tensor;
    uint64_t first;

    slice_walk_seek(&gathering.walk, source->slice.length - 1);
    if (source->tensor_base > end ||
        gathering.walk.at + source->slice.run_bytes > end - source->tensor_base)
        return false;
    tensor = zt_source_mapped(source->tensor, source->tensor_base, 0);
    if (tensor == NULL || !seems_resident(&gathering, tensor, offset))
        return false;
    slice_walk_seek(&gathering.walk, offset + length - 1);
    gathering.end = gathering.walk.at + gathering.walk.within + 1;
    slice_walk_seek(&gathering.walk, offset);
    first = gathering.walk.at + gathering.walk.within;
    /* Only read from. */
    gathering.window = (uint8_t *)(uintptr_t)tensor;
    return zt_source_touch(source->tensor, source->tensor_base + first, gathering.end - first,
                           copy_all, &gathering, NULL) == ZT_OK;
}

/* --- the source --- */

static uint64_t slice_size(const struct zt_source *source)
{
    return ((const struct slice_source *)source)->slice.length;
}

static enum zt_status slice_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                    size_t length, struct zt_error *error)
{
    const struct slice_source *slice_source = (const struct slice_source *)source;
    const struct zt_slice *slice = &slice_source->slice;
    enum zt_status status = zt_source_check_range(slice->length, offset, length, error);

    if (status != ZT_OK || length == 0)
        return status;
    if (zt_slice_is_contiguous(slice))
        return zt_source_read_at(slice_source->tensor,
                                 slice_source->tensor_base + slice->offset + offset, buffer, length,
                                 error);
    return gather_mapped(slice_source, offset, buffer, length)
               ? ZT_OK
               : gather(slice_source, offset, buffer, length, error);
}

static const uint8_t *slice_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void slice_close(struct zt_source *source)
{
    free(source);
}

/* Finds the loops, from the innermost outwards, whose gaps cost less to read than to skip. */
static void find_dense_loops(struct slice_source *source)
{
    const struct zt_slice *slice = &source->slice;
    unsigned i = slice->loop_count;
    uint64_t extent = slice->run_bytes;
    uint64_t extra = slice->run_bytes / EXTRA_COPY_DIVISOR;

    while (i > 0 && extra <= BRIDGED_BYTES &&
           slice->loops[i - 1].stride_bytes - extent <= BRIDGED_BYTES - extra) {
        i--;
        extent += (slice->loops[i].count - 1) * slice->loops[i].stride_bytes;
    }
    source->first_dense_loop = i;
    source->dense_extent = extent;
    source->dense_bytes = slice->run_bytes;
    while (i < slice->loop_count)
        source->dense_bytes *= slice->loops[i++].count;
}

static const struct zt_source_ops slice_ops = {
    .size = slice_size, .read_at = slice_read_at, .map = slice_map, .close = slice_close};

const struct zt_slice *zt_slice_of_source(const struct zt_source *source,
                                          struct zt_source **out_tensor)
{
    const struct slice_source *slice = (const struct slice_source *)source;

    if (source->ops != &slice_ops)
        return NULL;
    if (out_tensor != NULL)
        *out_tensor = slice->tensor;
    return &slice->slice;
}

enum zt_status zt_slice_source(const struct zt_slice *slice, struct zt_source *tensor,
                               uint64_t base, struct zt_source **out_source, struct zt_error *error)
{
    struct slice_source *source = malloc(sizeof(*source));

    if (source == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a source");
    source->base.ops = &slice_ops;
    source->slice = *slice;
    source->tensor = tensor;
    source->tensor_base = base;
    find_dense_loops(source);
    *out_source = &source->base;
    return ZT_OK;
}

enum zt_status zt_slice_source_over(const struct zt_source *slice, struct zt_source *tensor,
                                    struct zt_source **out_source, struct zt_error *error)
{
    const struct slice_source *like = (const struct slice_source *)slice;

    assert(slice->ops == &slice_ops);
    return zt_slice_source(&like->slice, tensor, like->tensor_base, out_source, error);
}
