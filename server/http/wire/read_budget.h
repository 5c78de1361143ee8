/* The memory for answers that are read ahead (readahead.h): all of the process share one budget.
 * When it is spent, a new answer gets little, so that slow readers cannot block other clients. */
#ifndef HTTP_WIRE_READ_BUDGET_H
#define HTTP_WIRE_READ_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

/* An answer begins to share the budget, and ends. */
void read_budget_join(void);
void read_budget_leave(void);

/* Halves wanted, down to least, until the budget and a fair share of it allow it. Give the result
 * back. Only between join and leave. */
size_t read_budget_take(size_t wanted, size_t least);
void read_budget_give(size_t bytes);

bool read_budget_is_spent(void);

#endif
