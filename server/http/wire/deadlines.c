/* Lists of deadlines: everything is constant time, as it happens several times a request. */
#include "http/wire/deadlines.h"

#include <stddef.h>

void deadline_clear(struct deadline *deadline)
{
    struct deadlines *list = deadline->list;

    if (list == NULL)
        return;
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

void deadline_set(struct deadline *deadline, struct deadlines *list, uint64_t now_ms)
{
    deadline_clear(deadline);
    deadline->list = list;
    deadline->due_ms = now_ms + list->time_ms;
    deadline->before = list->last;
    deadline->after = NULL;
    if (list->last != NULL)
        list->last->after = deadline;
    else
        list->first = deadline;
    list->last = deadline;
}

struct deadline *deadlines_take_due(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *first = list->first;

    if (first == NULL || first->due_ms > now_ms)
        return NULL;
    deadline_clear(first);
    return first;
}
