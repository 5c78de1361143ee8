/* A source that is elsewhere: blocks of 1 MiB in a sparse file, brought when they are waited for,
 * punched out again as soon as nobody holds them. It is slow, fails and counts as tests like. */
#ifndef FAR_SOURCE_H
#define FAR_SOURCE_H

#include "sources.h"
#include "tests.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "zt/source.h"

#define FAR_BLOCK  ((uint64_t)1 << 20)
#define FAR_BLOCKS 64

struct far_source {
    struct zt_source base; /* first */
    struct zt_source *view;
    const uint8_t *bytes; /* what is there, elsewhere */
    uint64_t length;
    pthread_mutex_t lock;
    bool is_here[FAR_BLOCKS];
    unsigned pins[FAR_BLOCKS];
    atomic_uint held; /* pins */
    /* Tests set these while a worker may still be reading ahead for the test before. */
    atomic_uint_fast64_t asked_end; /* behind the furthest byte that was to be brought */
    atomic_uint advised;
    atomic_bool advice_brings;
    atomic_bool punches;
    atomic_uint delay_ms;          /* of each pin that has to bring something */
    _Atomic(enum zt_status) fails; /* with this, what is not here and lies behind fails_at */
    atomic_uint_fast64_t fails_at;
    atomic_bool has_no_room; /* behind full_at */
    atomic_uint_fast64_t full_at;
    atomic_uint reads;
    atomic_uint waits;
    atomic_bool waited_on_a_loop;
    /* Waiters of bytes behind held_at, which are held back for ever. */
    atomic_uint_fast64_t held_at; /* 0: none are */
    struct zt_source_waiter *waiting;
    atomic_uint waiting_count;
};

static inline struct far_source *as_far(const struct zt_source *source)
{
    return (struct far_source *)(uintptr_t)source;
}

static inline uint64_t far_size(const struct zt_source *source)
{
    return as_far(source)->length;
}

static inline void far_wait(struct far_source *far)
{
    const int64_t begun_ms = clock_ms();

    if (!thread_may_wait())
        atomic_store(&far->waited_on_a_loop, true);
    AWAIT(clock_ms() - begun_ms >= far->delay_ms);
}

/* With the lock held. */
static inline void far_note(struct far_source *far, uint64_t end)
{
    if (end > far->asked_end)
        far->asked_end = end;
}

static inline bool far_has(struct far_source *far, uint64_t offset, uint64_t length)
{
    for (uint64_t i = offset / FAR_BLOCK; i * FAR_BLOCK < offset + length; i++)
        if (!far->is_here[i])
            return false;
    return true;
}

/* With the lock held. */
static inline void far_bring(struct far_source *far, uint64_t offset, uint64_t length)
{
    for (uint64_t i = offset / FAR_BLOCK; i * FAR_BLOCK < offset + length; i++) {
        const uint64_t at = i * FAR_BLOCK;
        const uint64_t room = far->length - at < FAR_BLOCK ? far->length - at : FAR_BLOCK;

        if (!far->is_here[i])
            assert_int_equal(
                pwrite(zt_source_descriptor(far->view), far->bytes + at, room, (off_t)at), room);
        far->is_here[i] = true;
    }
}

static inline enum zt_status far_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                         size_t length, struct zt_error *error)
{
    struct far_source *far = as_far(source);

    far_wait(far);
    atomic_fetch_add(&far->reads, 1);
    assert_true(offset <= far->length && length <= far->length - offset);
    if (far->fails != ZT_OK && offset + length > far->fails_at)
        return zt_fail(error, far->fails, NULL, offset, "the store is away");
    memcpy(buffer, far->bytes + offset, length);
    return ZT_OK;
}

static inline void far_release(struct zt_pin *pin)
{
    struct far_source *far = pin->held;

    pthread_mutex_lock(&far->lock);
    for (uint64_t i = pin->first; i <= pin->last; i++) {
        assert_true(far->pins[i] > 0);
        far->pins[i]--;
        if (far->pins[i] > 0 || !far->punches)
            continue;
        far->is_here[i] = false;
        assert_int_equal(fallocate(zt_source_descriptor(far->view),
                                   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                   (off_t)(i * FAR_BLOCK), (off_t)FAR_BLOCK),
                         0);
    }
    assert_true(far->held > 0);
    far->held--;
    pthread_mutex_unlock(&far->lock);
}

static inline enum zt_status far_pin(struct zt_source *source, uint64_t offset, uint64_t length,
                                     bool wait, struct zt_pin *out_pin, struct zt_error *error)
{
    struct far_source *far = as_far(source);
    enum zt_status status = ZT_OK;

    assert_true(length > 0 && offset < far->length && length <= far->length - offset);
    pthread_mutex_lock(&far->lock);
    if (!far_has(far, offset, length)) {
        if (!wait) {
            status = zt_fail(error, ZT_UNAVAILABLE, NULL, offset, "not here");
        } else {
            far_note(far, offset + length);
            pthread_mutex_unlock(&far->lock);
            atomic_fetch_add(&far->waits, 1);
            far_wait(far);
            pthread_mutex_lock(&far->lock);
            if (far->fails != ZT_OK && offset + length > far->fails_at)
                status = zt_fail(error, far->fails, NULL, offset, "the store is away");
            else if (far->has_no_room && offset + length > far->full_at)
                status = zt_fail(error, ZT_LIMIT, NULL, offset, "no room");
            else
                far_bring(far, offset, length);
        }
    }
    if (status == ZT_OK) {
        *out_pin = (struct zt_pin){.view = far->view,
                                   .release = far_release,
                                   .held = far,
                                   .first = offset / FAR_BLOCK,
                                   .last = (offset + length - 1) / FAR_BLOCK};
        for (uint64_t i = out_pin->first; i <= out_pin->last; i++)
            far->pins[i]++;
        far->held++;
    }
    pthread_mutex_unlock(&far->lock);
    return status;
}

static inline void far_advise(struct zt_source *source, uint64_t offset, uint64_t length)
{
    struct far_source *far = as_far(source);

    pthread_mutex_lock(&far->lock);
    assert_true(offset + length <= far->length);
    far->advised++;
    far_note(far, offset + length);
    if (far->advice_brings)
        far_bring(far, offset, length);
    pthread_mutex_unlock(&far->lock);
}

/* Brings the block of the first byte at once. */
static inline void far_await(struct zt_source *source, uint64_t offset, uint64_t length,
                             uint64_t least, struct zt_source_waiter *waiter)
{
    struct far_source *far = as_far(source);

    (void)length;
    (void)least;
    zt_error_clear(&waiter->error);
    pthread_mutex_lock(&far->lock);
    if (far->held_at > 0 && offset >= far->held_at) {
        waiter->next = far->waiting;
        far->waiting = waiter;
        atomic_fetch_add(&far->waiting_count, 1);
        pthread_mutex_unlock(&far->lock);
        return;
    }
    if (far->fails != ZT_OK && offset >= far->fails_at)
        zt_fail(&waiter->error, far->fails, NULL, offset, "the store is away");
    else
        far_bring(far, offset, 1);
    pthread_mutex_unlock(&far->lock);
    waiter->wake(waiter);
}

static inline uint64_t far_pass(struct zt_source *source, uint64_t offset, uint64_t length)
{
    const uint64_t held_at = as_far(source)->held_at;

    if (held_at == 0 || offset + length <= held_at)
        return length;
    return offset < held_at ? held_at - offset : 0;
}

static inline bool far_forget(struct zt_source *source, struct zt_source_waiter *waiter)
{
    struct far_source *far = as_far(source);
    struct zt_source_waiter **link = &far->waiting;
    bool is_waiting;

    pthread_mutex_lock(&far->lock);
    while (*link != NULL && *link != waiter)
        link = &(*link)->next;
    is_waiting = *link != NULL;
    if (is_waiting) {
        *link = waiter->next;
        atomic_fetch_sub(&far->waiting_count, 1);
    }
    pthread_mutex_unlock(&far->lock);
    return is_waiting;
}

static inline size_t far_take_arrived(struct zt_source *source, uint64_t offset, void *buffer,
                                      size_t length)
{
    (void)source;
    (void)offset;
    (void)buffer;
    (void)length;
    return 0;
}

static inline void far_close(struct zt_source *source)
{
    struct far_source *far = as_far(source);

    assert_int_equal(far->held, 0);
    zt_source_close(far->view);
    pthread_mutex_destroy(&far->lock);
    free(far);
}

static const struct zt_source_ops far_ops = {.size = far_size,
                                             .read_at = far_read_at,
                                             .map = source_without_map,
                                             .close = far_close,
                                             .pin = far_pin,
                                             .advise = far_advise};

/* The same for a source that calls its readers back. */
static const struct zt_source_ops far_calling_ops = {.size = far_size,
                                                     .read_at = far_read_at,
                                                     .map = source_without_map,
                                                     .close = far_close,
                                                     .pin = far_pin,
                                                     .advise = far_advise,
                                                     .await = far_await,
                                                     .pass = far_pass,
                                                     .forget = far_forget,
                                                     .take_arrived = far_take_arrived};

static inline struct far_source *far_open(const uint8_t *bytes, uint64_t length,
                                          const struct zt_source_ops *ops)
{
    struct far_source *far = calloc(1, sizeof(*far));
    char path[] = "/tmp/zt-test-far-XXXXXX";
    const int descriptor = mkstemp(path);

    assert_non_null(far);
    assert_true(descriptor >= 0 && unlink(path) == 0);
    assert_true(length <= FAR_BLOCKS * FAR_BLOCK && ftruncate(descriptor, (off_t)length) == 0);
    far->base.ops = ops;
    far->bytes = bytes;
    far->length = length;
    pthread_mutex_init(&far->lock, NULL);
    assert_ok(zt_source_from_descriptor(descriptor, &far->view, NULL));
    return far;
}

/* A client may have its answer before the server has released what the answer was read from. */
static inline void far_await_released(struct far_source *far)
{
    AWAIT(far->held == 0);
}

/* Everything is here, or nothing. */
static inline void far_set(struct far_source *far, bool is_here)
{
    far_await_released(far);
    pthread_mutex_lock(&far->lock);
    memset(far->is_here, 0, sizeof(far->is_here));
    assert_int_equal(ftruncate(zt_source_descriptor(far->view), 0), 0);
    assert_int_equal(ftruncate(zt_source_descriptor(far->view), (off_t)far->length), 0);
    if (is_here)
        far_bring(far, 0, far->length);
    pthread_mutex_unlock(&far->lock);
    far->punches = false;
    far->advice_brings = false;
    far->has_no_room = false;
    far->held_at = 0;
    far->fails = ZT_OK;
    far->fails_at = 0;
    far->full_at = 0;
    far->asked_end = 0;
    far->delay_ms = 0;
    far->advised = 0;
    atomic_store(&far->reads, 0);
    atomic_store(&far->waits, 0);
}

#endif
