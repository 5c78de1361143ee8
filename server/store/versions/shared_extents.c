/* Finds ranges that may be equal, compares them, and asks the kernel to share them.
 *
 * The bytes are compared here first, although the kernel does it again: it reads page by page
 * without reading ahead, and holds locks meanwhile that readers of both files wait for. */
#include "store/versions/shared_extents.h"

#include <assert.h>
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include "base/memory.h"
#include "disk/disk_file.h"
#include "zt/model.h"

/* The length of a call to the kernel, which bounds how long it holds its locks. */
#define CALL_BYTES ((uint64_t)1 << 20)
/* Neighbouring tensors are one range up to this length. */
#define RANGE_BYTES CALL_BYTES
/* Sharing less than this would split a file into many small extents. */
#define LEAST_BYTES ((uint64_t)64 << 10)
#define READ_BYTES  ((size_t)128 << 10)
/* No file system has larger blocks. */
#define BLOCK_MOST ((uint64_t)64 << 10)

/* Of `to`: from the first byte up to the end; the same bytes of `from` begin at `from`. */
struct range {
    uint64_t start;
    uint64_t end;
    uint64_t from;
};

struct shared_extents {
    struct zt_source *from;
    struct zt_source *to;
    uint64_t block; /* a power of two */
    struct range *ranges;
    size_t count;
    size_t capacity;
    size_t next;
    uint64_t done;  /* bytes of that range which were compared */
    uint8_t *bytes; /* to compare: READ_BYTES of each file */
    uint64_t shared;
};

static uint64_t whole(const struct shared_extents *sharing, uint64_t offset)
{
    return offset & ~(sharing->block - 1);
}

/* --- ranges --- */

static bool add(struct shared_extents *sharing, struct range range)
{
    if (zt_array_reserve(&sharing->ranges, &sharing->capacity, sharing->count + 1,
                         sizeof(*sharing->ranges), SIZE_MAX) != ZT_OK)
        return false;
    sharing->ranges[sharing->count++] = range;
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *one = a;
    const struct range *other = b;

    return one->start != other->start ? (one->start < other->start ? -1 : 1)
           : one->end != other->end   ? (one->end < other->end ? -1 : 1)
                                      : 0;
}

static const struct zt_component *find(const struct zt_model *model, struct zt_text object,
                                       struct zt_text component)
{
    const struct zt_object *found = zt_model_find(model, object);

    return found != NULL ? zt_object_find(model, found, component) : NULL;
}

/* Adds the tensor if the earlier file has it, in its own bytes, and at a distance of whole
 * blocks. */
static bool add_component(struct shared_extents *sharing, const struct zt_model *earlier,
                          struct zt_text object, const struct zt_component *component)
{
    const struct zt_component *found = find(earlier, object, zt_component_name(component));

    if (component->shard != 0 || component->length == 0 || found == NULL || found->shard != 0 ||
        found->length != component->length ||
        (found->offset & (sharing->block - 1)) != (component->offset & (sharing->block - 1)))
        return true;
    return add(sharing, (struct range){component->offset, component->offset + component->length,
                                       found->offset});
}

static bool add_components(struct shared_extents *sharing, const struct zt_model *earlier,
                           const struct zt_model *model)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        for (uint32_t j = 0; j < object->component_count; j++)
            if (!add_component(sharing, earlier, zt_object_name(object),
                               &zt_object_components(model, object)[j]))
                return false;
    }
    return true;
}

static bool continues(const struct shared_extents *sharing, const struct range *last,
                      const struct range *next)
{
    return next->start - last->start == next->from - last->from &&
           next->start <= last->end + sharing->block && last->end - last->start < RANGE_BYTES;
}

/* Joins small neighbours, and rounds all to whole blocks: a range begins with the block in which
 * its first byte is, so the end of the tensor before belongs to it. Leaves out what is too short
 * afterwards. */
static void join(struct shared_extents *sharing)
{
    const size_t count = sharing->count;
    size_t joined = 0;

    if (count > 0)
        qsort(sharing->ranges, count, sizeof(*sharing->ranges), compare_ranges);
    for (size_t i = 0; i < count; i++) {
        const struct range next = sharing->ranges[i];
        struct range *last = joined > 0 ? &sharing->ranges[joined - 1] : NULL;

        if (last != NULL && next.end <= last->end)
            continue;
        if (last != NULL && continues(sharing, last, &next))
            last->end = next.end;
        else
            sharing->ranges[joined++] = next;
    }
    sharing->count = 0;
    for (size_t i = 0; i < joined; i++) {
        const struct range range = sharing->ranges[i];
        const struct range rounded = {whole(sharing, range.start), whole(sharing, range.end),
                                      whole(sharing, range.from)};

        assert(range.start - rounded.start == range.from - rounded.from);
        if (rounded.end >= rounded.start + LEAST_BYTES)
            sharing->ranges[sharing->count++] = rounded;
    }
}

static bool add_whole(struct shared_extents *sharing)
{
    const uint64_t from = zt_source_size(sharing->from);
    const uint64_t to = zt_source_size(sharing->to);

    return add(sharing, (struct range){0, whole(sharing, from < to ? from : to), 0});
}

/* Returns false without memory. */
static bool find_ranges(struct shared_extents *sharing)
{
    struct zt_model *earlier = NULL;
    struct zt_model *model = NULL;
    struct zt_error ignored;
    bool is_found;

    if (zt_model_open(sharing->to, &model, &ignored) == ZT_OK &&
        zt_model_open(sharing->from, &earlier, &ignored) == ZT_OK) {
        is_found = add_components(sharing, earlier, model);
        join(sharing);
    } else {
        is_found = add_whole(sharing);
    }
    zt_model_free(model);
    zt_model_free(earlier);
    return is_found;
}

static bool find_block(struct shared_extents *sharing)
{
    struct statvfs facts;

    if (fstatvfs(zt_source_descriptor(sharing->to), &facts) != 0 || facts.f_frsize == 0 ||
        facts.f_frsize > BLOCK_MOST || (facts.f_frsize & (facts.f_frsize - 1)) != 0)
        return false;
    sharing->block = facts.f_frsize;
    return true;
}

struct shared_extents *shared_extents_new(struct zt_source *from, struct zt_source *to)
{
    struct shared_extents *sharing = calloc(1, sizeof(*sharing));

    assert(from != NULL && to != NULL);
    if (sharing == NULL) {
        zt_source_close(from);
        zt_source_close(to);
        return NULL;
    }
    sharing->from = from;
    sharing->to = to;
    if (zt_source_descriptor(from) >= 0 && zt_source_descriptor(to) >= 0 && find_block(sharing) &&
        find_ranges(sharing) && sharing->count > 0)
        sharing->bytes = malloc(2 * READ_BYTES);
    if (sharing->bytes != NULL)
        return sharing;
    shared_extents_free(sharing);
    return NULL;
}

void shared_extents_free(struct shared_extents *sharing)
{
    if (sharing == NULL)
        return;
    zt_source_close(sharing->from);
    zt_source_close(sharing->to);
    free(sharing->ranges);
    free(sharing->bytes);
    free(sharing);
}

uint64_t shared_extents_bytes(const struct shared_extents *sharing)
{
    return sharing->shared;
}

/* --- comparing --- */

/* Counts the blocks that are equal before the first difference, in bytes. Returns false with errno
 * if a file cannot be read. */
static bool count_equal(const struct shared_extents *sharing, const struct range *part,
                        uint64_t *io_bytes, uint64_t *out_equal)
{
    uint8_t *one = sharing->bytes;
    uint8_t *other = sharing->bytes + READ_BYTES;
    uint64_t equal = 0;

    assert(whole(sharing, part->end - part->start) == part->end - part->start);
    while (part->start + equal < part->end) {
        const uint64_t rest = part->end - part->start - equal;
        const size_t length = rest < READ_BYTES ? (size_t)rest : READ_BYTES;
        size_t same = 0;

        if (!disk_read(zt_source_descriptor(sharing->to), one, length, part->start + equal) ||
            !disk_read(zt_source_descriptor(sharing->from), other, length, part->from + equal))
            return false;
        *io_bytes -= *io_bytes < length ? *io_bytes : length;
        while (same < length && memcmp(one + same, other + same, sharing->block) == 0)
            same += sharing->block;
        equal += same;
        if (same < length)
            break;
    }
    *out_equal = equal;
    return true;
}

/* --- sharing --- */

/* Returns how many bytes are shared now; 0 with errno, which is EAGAIN if the kernel sees a
 * difference. */
static uint64_t share_once(const struct shared_extents *sharing, uint64_t to, uint64_t from,
                           uint64_t length)
{
    /* A structure with one element of its last member, which is an array without a length. */
    _Alignas(struct file_dedupe_range)
        uint8_t space[sizeof(struct file_dedupe_range) + sizeof(struct file_dedupe_range_info)] = {
            0};
    struct file_dedupe_range *request = (struct file_dedupe_range *)(void *)space;
    struct file_dedupe_range_info *info = &request->info[0];

    request->src_offset = from;
    request->src_length = length;
    request->dest_count = 1;
    info->dest_fd = zt_source_descriptor(sharing->to);
    info->dest_offset = to;
    if (ioctl(zt_source_descriptor(sharing->from), FIDEDUPERANGE, request) != 0)
        return 0;
    errno = info->status < 0 ? -info->status : EAGAIN;
    return info->status == FILE_DEDUPE_RANGE_SAME ? info->bytes_deduped : 0;
}

static bool is_refusal(int os_error)
{
    return os_error == EOPNOTSUPP || os_error == ENOTTY || os_error == ENOSYS ||
           os_error == EINVAL || os_error == EXDEV;
}

/* Returns false with errno. */
static bool share(struct shared_extents *sharing, uint64_t to, uint64_t from, uint64_t length)
{
    while (length > 0) {
        const uint64_t shared = share_once(sharing, to, from, length);

        if (shared == 0)
            return errno == EAGAIN;
        assert(shared <= length);
        sharing->shared += shared;
        to += shared;
        from += shared;
        length -= shared;
    }
    return true;
}

/* Compares the next part of a range. Returns false with errno. */
static bool take_step(struct shared_extents *sharing, const struct range *range, uint64_t *io_bytes)
{
    struct range part = {range->start + sharing->done, range->end, range->from + sharing->done};
    uint64_t equal;

    /* The last part has no remainder that is too short. */
    if (part.end - part.start > CALL_BYTES + LEAST_BYTES)
        part.end = part.start + CALL_BYTES;
    if (!count_equal(sharing, &part, io_bytes, &equal) ||
        (equal >= LEAST_BYTES && !share(sharing, part.start, part.from, equal)))
        return false;
    /* In its first block, another tensor may differ. */
    sharing->done += sharing->done == 0 && equal == 0 ? sharing->block : part.end - part.start;
    return true;
}

enum shared_extents_answer shared_extents_run(struct shared_extents *sharing, uint64_t *io_bytes,
                                              const atomic_bool *stop)
{
    while (sharing->next < sharing->count) {
        const struct range *range = &sharing->ranges[sharing->next];

        if (*io_bytes == 0 || atomic_load(stop))
            return SHARED_EXTENTS_MORE;
        if (!take_step(sharing, range, io_bytes))
            return is_refusal(errno) ? SHARED_EXTENTS_REFUSED : SHARED_EXTENTS_FAILED;
        if (range->start + sharing->done >= range->end) {
            sharing->next++;
            sharing->done = 0;
        }
    }
    return SHARED_EXTENTS_DONE;
}
