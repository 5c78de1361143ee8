/* Deadlines of connections, as a list in the order in which they are due. That is the order in
 * which they were set, since all members of a list have the same time, even after it changes. */
#ifndef HTTP_WIRE_DEADLINES_H
#define HTTP_WIRE_DEADLINES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct deadlines;

/* A member of a structure that has a deadline. All zero: none is set. */
struct deadline {
    struct deadlines *list;
    struct deadline *before;
    struct deadline *after;
    uint64_t due_ms;
};

struct deadlines {
    uint64_t time_ms;   /* from setting a deadline to its end; deadlines_change_time changes it */
    bool is_for_reader; /* the client has to take bytes; with all other lists it has to send some */
    struct deadline *first;
    struct deadline *last;
};

/* Harmless if none is set. */
static inline void deadline_clear(struct deadline *deadline)
{
    struct deadlines *list = deadline->list;

    if (list == NULL)
        return;
    assert((deadline->before == NULL) == (list->first == deadline));
    assert((deadline->after == NULL) == (list->last == deadline));
    if (deadline->before != NULL)
        deadline->before->after = deadline->after;
    else
        list->first = deadline->after;
    if (deadline->after != NULL)
        deadline->after->before = deadline->before;
    else
        list->last = deadline->before;
    deadline->list = NULL;
}

/* Sets the deadline in that list, counted from now; it may have been set in another list. */
static inline void deadline_set(struct deadline *deadline, struct deadlines *list, uint64_t now_ms)
{
    deadline_clear(deadline);
    deadline->list = list;
    deadline->due_ms = now_ms + list->time_ms;
    deadline->before = list->last;
    deadline->after = NULL;
    assert(list->last == NULL || list->last->due_ms <= deadline->due_ms);
    if (list->last != NULL)
        list->last->after = deadline;
    else
        list->first = deadline;
    list->last = deadline;
}

/* Changes the time of all members, also of those that are set. */
static inline void deadlines_change_time(struct deadlines *list, uint64_t time_ms)
{
    for (struct deadline *one = list->first; one != NULL; one = one->after) {
        assert(one->list == list && one->due_ms >= list->time_ms);
        one->due_ms = one->due_ms - list->time_ms + time_ms;
    }
    list->time_ms = time_ms;
}

/* When the first one is due; UINT64_MAX if there is none. */
static inline uint64_t deadlines_due_ms(const struct deadlines *list)
{
    return list->first != NULL ? list->first->due_ms : UINT64_MAX;
}

/* Removes the first one if it is due; NULL if none is. */
static inline struct deadline *deadlines_take_due(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *first = list->first;

    if (first == NULL || first->due_ms > now_ms)
        return NULL;
    deadline_clear(first);
    assert(list->first != first);
    return first;
}

#endif
