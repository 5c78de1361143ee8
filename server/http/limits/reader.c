/* Measures the rate in windows of one grace period each. Measured over the whole answer, a client
 * that was fast at first could trickle for hours. */
#include "http/limits/reader.h"

#include <assert.h>

#define WINDOW_LEAST_MS 1000

static bool has_stalled(struct reader *reader, const struct reader_limits *limits,
                        struct reader_progress now)
{
    if (now.taken_bytes == reader->last.taken_bytes)
        return now.owed_ms - reader->last.owed_ms >= limits->stall_ms;
    reader->last = now;
    return false;
}

static bool trickles(struct reader *reader, const struct reader_limits *limits,
                     struct reader_progress now)
{
    const uint64_t owed_ms = now.owed_ms - reader->window.owed_ms;
    const uint64_t taken_bytes = now.taken_bytes - reader->window.taken_bytes;

    if (owed_ms < limits->grace_ms || owed_ms < WINDOW_LEAST_MS)
        return false;
    reader->window = now;
    return taken_bytes < owed_ms / 1000 * limits->bytes_per_s;
}

bool reader_is_too_slow(struct reader *reader, const struct reader_limits *limits,
                        struct reader_progress now)
{
    /* The time can decrease when the kernel starts to count it. */
    if (!reader->is_known || now.owed_ms < reader->last.owed_ms) {
        reader->last = now;
        reader->window = now;
        reader->is_known = now.owed_ms > 0;
        return false;
    }
    assert(now.taken_bytes >= reader->last.taken_bytes);
    return has_stalled(reader, limits, now) || trickles(reader, limits, now);
}

bool reader_is_starved(struct reader *reader, const struct reader_limits *limits,
                       struct reader_progress now, uint64_t now_ms)
{
    if (reader->seen_ms != 0 && now_ms != 0 && now.taken_bytes == reader->seen.taken_bytes &&
        now.owed_ms == reader->seen.owed_ms)
        return now_ms - reader->seen_ms >= limits->stall_ms;
    reader->seen = now;
    reader->seen_ms = now_ms;
    return false;
}
