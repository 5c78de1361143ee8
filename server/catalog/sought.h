/* Names that are not in the catalog and that requests wait to have looked up in a store which may
 * wait. The owner holds its lock for all calls. */
#ifndef CATALOG_SOUGHT_H
#define CATALOG_SOUGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "zt/text.h"

struct waiter;

/* The maximum number of names, which allows ten lookups per second. */
#define SOUGHT_MAX 64

/* All zero is empty. */
struct sought {
    char *names[SOUGHT_MAX]; /* for the next round */
    size_t count;
    char *searching[SOUGHT_MAX]; /* of this round; only its thread changes them */
    size_t searching_count;
    struct waiter *joined; /* woken once these were looked up */
};

/* Adds a name for the next round, unless it was added before. Returns false if there are too many,
 * or no memory. */
bool sought_add(struct sought *sought, struct zt_text name);
/* Returns true if the next round looks up this name. */
bool sought_has(const struct sought *sought, struct zt_text name);
/* Lets the waiter wait for the end of this round's search. Returns false if the round does not look
 * up this name. */
bool sought_join(struct sought *sought, struct zt_text name, struct waiter *waiter);

/* Begins a round that looks up all added names. */
void sought_begin(struct sought *sought);
/* Ends the round, and returns the waiters that joined it. */
struct waiter *sought_end(struct sought *sought);

#endif
