/* Frees data that has not been requested for a while. */
#ifndef SERVE_IDLE_MEMORY_H
#define SERVE_IDLE_MEMORY_H

struct idle_timer;
struct server;

/* Returns NULL, and logs it, if there is no timer; no memory is freed then. The caller frees the
 * timer. */
struct idle_timer *idle_memory_watch(struct server *server);

#endif
