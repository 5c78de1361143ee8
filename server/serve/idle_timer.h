/* Work in the background at intervals. */
#ifndef SERVE_IDLE_TIMER_H
#define SERVE_IDLE_TIMER_H

struct idle_timer;
struct server;

/* Calls run(context) on an idle worker at once and at this interval, but never before the previous
 * call has returned. Returns NULL if there is no timer. */
struct idle_timer *idle_timer_start(struct server *server, unsigned interval_s,
                                    void (*run)(void *context), void *context);
/* Call it after the workers have ended. Accepts NULL. */
void idle_timer_free(struct idle_timer *timer);

#endif
