/* Where the bytes of a slice's source are in the source that it gathers from. */
#include "model/slice_walk.h"

#include <assert.h>

/* A pass over the loops from `loop` on: bytes of the slice, within so many of the tensor. */
struct pass {
    unsigned loop;
    uint64_t bytes;
    uint64_t extent;
};

/* The position in the tensor of a byte of the slice. */
static uint64_t place_of(const struct slice_source *source, uint64_t offset)
{
    struct slice_walk walk = {.slice = &source->slice};

    slice_walk_seek(&walk, offset);
    return walk.at + walk.within;
}

/* Returns the number of passes, each cut to what is wanted. */
static size_t list_passes(const struct slice_source *source, struct pass pass, uint64_t offset,
                          uint64_t length, struct zt_slice_run *out_runs, size_t most)
{
    struct slice_walk walk = {.slice = &source->slice};
    uint64_t within = offset % pass.bytes;
    size_t count = 0;

    slice_walk_seek(&walk, offset - within);
    while (count < most && length > 0) {
        const uint64_t rest = pass.bytes - within;
        const uint64_t bytes = rest < length ? rest : length;
        const uint64_t first = within == 0 ? walk.at : place_of(source, offset);
        const uint64_t end =
            bytes == rest ? walk.at + pass.extent : place_of(source, offset + bytes - 1) + 1;

        assert(first < end);
        out_runs[count++] = (struct zt_slice_run){source->tensor_base + first, end - first};
        offset += bytes;
        length -= bytes;
        within = 0;
        if (length > 0)
            slice_walk_advance_loop(&walk, pass.loop - 1, 1);
    }
    return count;
}

size_t zt_slice_source_runs(const struct zt_source *source, uint64_t offset, uint64_t length,
                            struct zt_slice_run *out_runs, size_t most)
{
    const struct slice_source *slice_source = (const struct slice_source *)source;
    const struct zt_slice *slice = &slice_source->slice;
    const struct pass run = {slice->loop_count, slice->run_bytes, slice->run_bytes};

    assert(zt_slice_of_source(source, NULL) != NULL && offset <= slice->length &&
           length <= slice->length - offset);
    return list_passes(slice_source, run, offset, length, out_runs, most);
}

size_t zt_slice_source_extents(const struct zt_source *source, uint64_t offset, uint64_t length,
                               struct zt_slice_run *out_extents, size_t most, uint64_t *out_bytes)
{
    const struct slice_source *slice = (const struct slice_source *)source;
    const struct pass pass = {slice->first_dense_loop, slice->dense_bytes, slice->dense_extent};
    size_t count;

    assert(zt_slice_of_source(source, NULL) != NULL && offset <= slice->slice.length &&
           length <= slice->slice.length - offset);
    count = list_passes(slice, pass, offset, length, out_extents, most);
    *out_bytes = count * pass.bytes - (count > 0 ? offset % pass.bytes : 0);
    if (*out_bytes > length)
        *out_bytes = length;
    return count;
}
