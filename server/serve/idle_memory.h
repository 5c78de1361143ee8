/* Frees data that has not been requested for a while, on a timer. */
#ifndef SERVE_IDLE_MEMORY_H
#define SERVE_IDLE_MEMORY_H

struct server;

struct idle_memory;

/* Starts the timer. Returns NULL, and logs it, if there is none; no memory is freed then. Free it
 * after the workers have stopped. */
struct idle_memory *idle_memory_watch(struct server *server);
/* Accepts NULL. */
void idle_memory_free(struct idle_memory *memory);

#endif
