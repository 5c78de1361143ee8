/* Waits for an event: they end when their time is over, when their client is gone, or together. */
#include "tests.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/timed_waits.h"

#define LONG_MS 600000

/* An event that one waiter waits for. */
struct event {
    struct waiter waiter; /* first, for casts */
    struct timed_wait wait;
    atomic_bool is_waiting;
    atomic_bool is_gone;
    atomic_uint woken;
};

static void wake(struct waiter *waiter)
{
    atomic_fetch_add(&((struct event *)waiter)->woken, 1);
}

static bool is_gone(const struct waiter *waiter)
{
    return atomic_load(&((const struct event *)(const void *)waiter)->is_gone);
}

static bool forget(void *context, struct waiter *waiter)
{
    struct event *event = context;

    assert_ptr_equal(&event->waiter, waiter);
    return atomic_exchange(&event->is_waiting, false);
}

static void init_event(struct event *event, int64_t due_ms)
{
    memset(event, 0, sizeof(*event));
    event->waiter = (struct waiter){.wake = wake, .is_gone = is_gone};
    event->wait = (struct timed_wait){
        .waiter = &event->waiter, .due_ms = due_ms, .forget = forget, .context = event};
    atomic_store(&event->is_waiting, true);
}

static void await_wake(struct event *event)
{
    while (atomic_load(&event->woken) == 0)
        usleep(1000);
}

TEST(wait_ends_when_it_is_due)
{
    struct timed_waits *waits = timed_waits_new();
    struct event due;
    struct event later;

    init_event(&due, clock_ms() + 20);
    init_event(&later, clock_ms() + LONG_MS);
    assert_true(timed_waits_add(waits, &later.wait));
    assert_true(timed_waits_add(waits, &due.wait));
    await_wake(&due);
    assert_int_equal(atomic_load(&later.woken), 0);
    timed_waits_remove(waits, &due.wait);
    timed_waits_remove(waits, &later.wait);
    timed_waits_free(waits);
    assert_int_equal(atomic_load(&due.woken), 1);
    assert_int_equal(atomic_load(&later.woken), 0);
}

TEST(event_that_came_first_is_not_followed_by_another_wake)
{
    struct timed_waits *waits = timed_waits_new();
    struct event event;
    struct event after;

    init_event(&event, clock_ms());
    init_event(&after, clock_ms());
    atomic_store(&event.is_waiting, false);
    assert_true(timed_waits_add(waits, &event.wait));
    assert_true(timed_waits_add(waits, &after.wait));
    await_wake(&after);
    timed_waits_remove(waits, &event.wait);
    timed_waits_remove(waits, &after.wait);
    timed_waits_free(waits);
    assert_int_equal(atomic_load(&event.woken), 0);
}

TEST(wait_ends_when_its_client_is_gone)
{
    struct timed_waits *waits = timed_waits_new();
    struct event event;

    init_event(&event, clock_ms() + LONG_MS);
    assert_true(timed_waits_add(waits, &event.wait));
    atomic_store(&event.is_gone, true);
    await_wake(&event);
    timed_waits_remove(waits, &event.wait);
    timed_waits_free(waits);
}

TEST(end_wakes_all_and_refuses_new_waits)
{
    struct timed_waits *waits = timed_waits_new();
    struct event events[3];
    struct event late;

    for (int i = 0; i < 3; i++) {
        init_event(&events[i], clock_ms() + LONG_MS);
        assert_true(timed_waits_add(waits, &events[i].wait));
    }
    timed_waits_remove(waits, &events[1].wait);
    timed_waits_end(waits);
    await_wake(&events[0]);
    await_wake(&events[2]);
    init_event(&late, clock_ms() + LONG_MS);
    assert_false(timed_waits_add(waits, &late.wait));
    timed_waits_remove(waits, &late.wait);
    timed_waits_remove(waits, &events[0].wait);
    timed_waits_remove(waits, &events[2].wait);
    timed_waits_free(waits);
    assert_int_equal(atomic_load(&events[1].woken), 0);
    assert_int_equal(atomic_load(&late.woken), 0);
}

TEST(nothing_is_started_without_a_wait)
{
    timed_waits_end(NULL);
    timed_waits_free(NULL);
    timed_waits_free(timed_waits_new());
}
