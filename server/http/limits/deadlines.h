/* Deadlines of connections, in a list ordered by due time. This is the order in which they were
 * set, because all members of a list have the same duration, even after it changes. */
#ifndef HTTP_WIRE_DEADLINES_H
#define HTTP_WIRE_DEADLINES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct deadlines;

/* Part of each structure that has a deadline. All zero: no deadline is set. */
struct deadline {
    struct deadlines *list;
    struct deadline *before;
    struct deadline *after;
    uint64_t due_ms;
};

struct deadlines {
    uint64_t time_ms;   /* duration of a deadline; deadlines_change_time changes it */
    bool is_for_reader; /* the client must read; in all other lists it must send */
    struct deadline *first;
    struct deadline *last;
};

/* Does nothing if no deadline is set. */
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

/* Sets the deadline in this list, starting now. It may have been set in another list. */
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

/* Changes the duration of the list, including deadlines already set. */
static inline void deadlines_change_time(struct deadlines *list, uint64_t time_ms)
{
    for (struct deadline *one = list->first; one != NULL; one = one->after) {
        assert(one->list == list && one->due_ms >= list->time_ms);
        one->due_ms = one->due_ms - list->time_ms + time_ms;
    }
    list->time_ms = time_ms;
}

/* Returns when the first deadline is due; UINT64_MAX if the list is empty. */
static inline uint64_t deadlines_due_ms(const struct deadlines *list)
{
    return list->first != NULL ? list->first->due_ms : UINT64_MAX;
}

/* Removes and returns the first deadline if it is due; else returns NULL. */
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
