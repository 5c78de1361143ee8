#include "remote/flight_queue.h"

#include <assert.h>
#include <stddef.h>

static struct flight_list *list_of(struct flight_queue *queue, const struct remote_flight *flight)
{
    return flight->exchange->is_urgent ? &queue->urgent : &queue->ordinary;
}

static void append(struct flight_list *list, struct remote_flight *flight)
{
    assert((list->first == NULL) == (list->last == NULL));
    flight->next = NULL;
    if (list->last != NULL)
        list->last->next = flight;
    else
        list->first = flight;
    list->last = flight;
}

static void prepend(struct flight_list *list, struct remote_flight *flight)
{
    flight->next = list->first;
    list->first = flight;
    if (list->last == NULL)
        list->last = flight;
}

/* Takes out what follows previous; NULL: the first. */
static struct remote_flight *take_after(struct flight_list *list, struct remote_flight *previous)
{
    struct remote_flight *flight = previous != NULL ? previous->next : list->first;

    if (flight == NULL)
        return NULL;
    if (previous != NULL)
        previous->next = flight->next;
    else
        list->first = flight->next;
    if (list->last == flight)
        list->last = previous;
    flight->next = NULL;
    return flight;
}

void flight_queue_add(struct flight_queue *queue, struct remote_flight *flight)
{
    append(list_of(queue, flight), flight);
}

void flight_queue_pause(struct flight_queue *queue, struct remote_flight *flight)
{
    struct remote_flight **at = &queue->paused.first;

    while (*at != NULL && (*at)->due_ms <= flight->due_ms)
        at = &(*at)->next;
    flight->next = *at;
    *at = flight;
    assert(flight->next == NULL || flight->next->due_ms > flight->due_ms);
}

void flight_queue_wake(struct flight_queue *queue, int64_t now_ms)
{
    while (queue->paused.first != NULL && queue->paused.first->due_ms <= now_ms) {
        struct remote_flight *flight = queue->paused.first;

        queue->paused.first = flight->next;
        prepend(list_of(queue, flight), flight);
    }
}

struct remote_flight *flight_queue_take(struct flight_queue *queue)
{
    struct remote_flight *flight = take_after(&queue->urgent, NULL);

    return flight != NULL ? flight : take_after(&queue->ordinary, NULL);
}

typedef bool flight_test(const void *context, const struct remote_flight *flight);

static struct remote_flight *take_if(struct flight_list *list, flight_test *fits,
                                     const void *context)
{
    struct remote_flight *previous = NULL;

    for (struct remote_flight *flight = list->first; flight != NULL; flight = flight->next) {
        if (fits(context, flight))
            return take_after(list, previous);
        previous = flight;
    }
    return NULL;
}

struct remote_flight *flight_queue_take_if(struct flight_queue *queue, flight_test *fits,
                                           const void *context)
{
    struct remote_flight *flight = take_if(&queue->urgent, fits, context);

    return flight != NULL ? flight : take_if(&queue->ordinary, fits, context);
}

static struct remote_flight *expire(struct flight_list *list, int64_t now_ms)
{
    struct remote_flight *previous = NULL;

    for (struct remote_flight *flight = list->first; flight != NULL; flight = flight->next) {
        if (flight->deadline_ms <= now_ms)
            return take_after(list, previous);
        previous = flight;
    }
    return NULL;
}

struct remote_flight *flight_queue_expire(struct flight_queue *queue, int64_t now_ms)
{
    struct remote_flight *flight = expire(&queue->urgent, now_ms);

    if (flight == NULL)
        flight = expire(&queue->ordinary, now_ms);
    return flight != NULL ? flight : expire(&queue->paused, now_ms);
}

int64_t flight_queue_due_ms(const struct flight_queue *queue)
{
    return queue->paused.first != NULL ? queue->paused.first->due_ms : INT64_MAX;
}

bool flight_queue_is_waiting(const struct flight_queue *queue)
{
    return queue->urgent.first != NULL || queue->ordinary.first != NULL;
}
