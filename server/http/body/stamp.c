/* A few multiplications: nobody gains by two stamps that collide, and whoever can write to the
 * folder could write what he likes. */
#include "http/body/stamp.h"

#include <sys/stat.h>

/* An odd number without pattern (2^64 divided by the golden ratio). */
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t stamp, uint64_t value)
{
    stamp = (stamp ^ value) * FACTOR;
    return stamp ^ stamp >> 32;
}

uint64_t file_stamp(const struct zt_source *file, uint64_t *out_bytes)
{
    struct stat stat = {0};
    uint64_t stamp = 1;

    /* Memory, which stays as it is. */
    if (zt_source_descriptor(file) < 0)
        stat.st_size = (off_t)zt_source_size(file);
    else if (fstat(zt_source_descriptor(file), &stat) != 0)
        stat.st_size = 0;
    if (out_bytes != NULL)
        *out_bytes = (uint64_t)stat.st_size;
    stamp = mix(stamp, (uint64_t)stat.st_size);
    stamp = mix(stamp, (uint64_t)stat.st_mtim.tv_sec);
    return mix(stamp, (uint64_t)stat.st_mtim.tv_nsec);
}

uint64_t segment_stamp(const struct segment *segment, uint64_t *out_bytes)
{
    const struct zt_slice *slice;
    const struct zt_source *file = segment_file(segment, &slice);
    uint64_t length = 0;
    uint64_t stamp;

    assert(segment->kind == SEGMENT_SOURCE);
    stamp = file_stamp(file != NULL ? file : segment->source, &length);
    if (out_bytes != NULL)
        *out_bytes = length;
    return segment->is_pinned ? mix(1, length) : stamp;
}

uint64_t answer_stamp(const struct answer *answer)
{
    const struct zt_source *last = NULL;
    uint64_t stamp = 1;

    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct zt_slice *slice;
        const struct zt_source *file = segment_file(&answer->segments[i], &slice);

        /* Segments of one file mostly follow each other. */
        if (file != NULL && file != last)
            stamp = mix(stamp, segment_stamp(&answer->segments[i], NULL));
        last = file != NULL ? file : last;
    }
    return stamp;
}
