/* Deadlines of connections: a list in the order in which its members are due, since all of them get
 * the same time. */
#ifndef HTTP_WIRE_DEADLINES_H
#define HTTP_WIRE_DEADLINES_H

#include <stdint.h>

struct deadlines;

/* Part of what has a deadline; all zero: none. */
struct deadline {
    struct deadlines *list;
    struct deadline *before;
    struct deadline *after;
    uint64_t due_ms;
};

struct deadlines {
    uint64_t time_ms; /* what every member gets */
    struct deadline *first;
    struct deadline *last;
};

/* Begins the deadline anew in that list, from now; it may have been in another. */
void deadline_set(struct deadline *deadline, struct deadlines *list, uint64_t now_ms);

/* Harmless without a deadline. */
void deadline_clear(struct deadline *deadline);

/* Takes out the first one that is due; NULL when none is. */
struct deadline *deadlines_take_due(struct deadlines *list, uint64_t now_ms);

#endif
