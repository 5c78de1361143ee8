/* Starts threads that see no signal but those of their own mistakes: signals reach the program as a
 * descriptor that one loop watches. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that runs function(argument), with all signals blocked except SIGBUS. The name,
 * of at most 15 characters, is what debuggers and `top -H` show. Returns 0 or an error number. */
int thread_start(pthread_t *out_thread, const char *name, void *(*function)(void *),
                 void *argument);

/* Declares that the calling thread serves many and never waits, neither for a disk nor for another
 * machine: an event loop. */
void thread_forbid_waiting(void);
bool thread_may_wait(void);

#endif
