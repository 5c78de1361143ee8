/* Starts threads that receive no signals except those that their own instructions cause. Other
 * signals reach the program through a descriptor that one loop watches. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that runs function(argument), with all signals blocked except SIGBUS. Debuggers
 * and `top -H` show the name, of at most 15 characters. Returns 0 or an error number. */
int thread_start(pthread_t *out_thread, const char *name, void *(*function)(void *),
                 void *argument);

/* Waits for a condition (with the default clock) at most this long. The caller must hold the
 * lock. */
void thread_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, unsigned wait_ms);

/* Returns true if some thread holds the lock. For assertions: if no thread does, it is taken. */
bool lock_is_held(pthread_mutex_t *lock);

/* Marks the calling thread as an event loop, which serves many clients and must never wait for a
 * disk or for another machine. */
void thread_forbid_waiting(void);
bool thread_may_wait(void);

#endif
