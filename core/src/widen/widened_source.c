/* Widened sources: reading reads blocks and widens them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "bytes/source_range.h"
#include "zt/widen.h"

/* Stored bytes per read. Fits with its values into the second-level cache, and into the stacks of
 * threads. */
#define WINDOW_BYTES ((size_t)32 << 10)

#define VALUE_BYTES   sizeof(float)
#define COPIED_VALUES ((size_t)4 * ZT_WIDEN_ELEMENTS_MAX)

struct widened_source {
    struct zt_source base;
    const struct zt_widener *widener;
    struct zt_source *stored;
    uint64_t stored_at;
    uint64_t elements;
};

static uint64_t widened_size(const struct zt_source *source)
{
    return ((const struct widened_source *)source)->elements * VALUE_BYTES;
}

static void to_little_endian(void *values, size_t length)
{
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        zt_words_reverse(values, length, VALUE_BYTES);
}

/* Widens `count` blocks from block `first` on; as many as fit into a window. */
static enum zt_status widen_window(const struct widened_source *source, uint64_t first,
                                   size_t count, float *out_values, struct zt_error *error)
{
    uint8_t window[WINDOW_BYTES];
    const unsigned block_bytes = zt_widener_bytes(source->widener);
    enum zt_status status =
        zt_source_read_at(source->stored, source->stored_at + first * block_bytes, window,
                          count * block_bytes, error);

    assert(count * block_bytes <= sizeof(window));
    if (status != ZT_OK)
        return status;
    zt_widen_blocks(source->widener, window, count, out_values);
    to_little_endian(out_values, count * zt_widener_elements(source->widener) * VALUE_BYTES);
    return ZT_OK;
}

/* Reads from any place into any buffer, by way of a few values on the stack. */
static enum zt_status read_copied(const struct widened_source *source, uint64_t offset,
                                  uint8_t *buffer, size_t length, size_t *out_length,
                                  struct zt_error *error)
{
    float values[COPIED_VALUES];
    const size_t span = zt_widener_elements(source->widener) * VALUE_BYTES;
    const size_t within = (size_t)(offset % span);
    const size_t room = sizeof(values) / span * span - within;
    const size_t taken = length < room ? length : room;
    enum zt_status status =
        widen_window(source, offset / span, (within + taken + span - 1) / span, values, error);

    assert(span <= sizeof(values) && within < span);
    if (status != ZT_OK)
        return status;
    memcpy(buffer, (const uint8_t *)values + within, taken);
    *out_length = taken;
    return ZT_OK;
}

/* Reads whole blocks into a buffer that is aligned for values, as many as fit into a window. */
static enum zt_status read_blocks(const struct widened_source *source, uint64_t offset,
                                  uint8_t *buffer, size_t length, size_t *out_length,
                                  struct zt_error *error)
{
    const size_t span = zt_widener_elements(source->widener) * VALUE_BYTES;
    const size_t most = WINDOW_BYTES / zt_widener_bytes(source->widener);
    const size_t count = length / span < most ? length / span : most;

    assert(count > 0 && offset % span == 0);
    *out_length = count * span;
    return widen_window(source, offset / span, count, (float *)(void *)buffer, error);
}

static enum zt_status widened_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                      size_t length, struct zt_error *error)
{
    const struct widened_source *widened = (const struct widened_source *)source;
    const size_t span = zt_widener_elements(widened->widener) * VALUE_BYTES;
    enum zt_status status = zt_source_check_range(widened_size(source), offset, length, error);

    for (size_t done = 0, step = 0; status == ZT_OK && done < length; done += step) {
        uint8_t *out = (uint8_t *)buffer + done;
        const bool is_whole = (offset + done) % span == 0 && length - done >= span;

        status = is_whole && (uintptr_t)out % _Alignof(float) == 0
                     ? read_blocks(widened, offset + done, out, length - done, &step, error)
                     : read_copied(widened, offset + done, out, length - done, &step, error);
    }
    return status;
}

static const uint8_t *widened_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void widened_close(struct zt_source *source)
{
    free(source);
}

static const struct zt_source_ops widened_ops = {
    .size = widened_size, .read_at = widened_read_at, .map = widened_map, .close = widened_close};

enum zt_status zt_widened_open(const struct zt_widener *widener, struct zt_source *stored,
                               uint64_t base, uint64_t elements, struct zt_source **out_source,
                               struct zt_error *error)
{
    struct widened_source *source;
    uint64_t length;

    assert(zt_widener_elements(widener) <= ZT_WIDEN_ELEMENTS_MAX);
    if (__builtin_mul_overflow(elements, (uint64_t)VALUE_BYTES, &length))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the widened elements do not fit in 64 bits");
    source = malloc(sizeof(*source));
    if (source == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a source");
    *source = (struct widened_source){{&widened_ops}, widener, stored, base, elements};
    *out_source = &source->base;
    return ZT_OK;
}
