/* Starts threads that never see a signal: signals reach the program as a descriptor that one loop
 * watches. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that runs function(argument), with all signals blocked. The name, of at most 15
 * characters, is what debuggers and `top -H` show. Returns 0 or an error number. */
int thread_start(pthread_t *out_thread, const char *name, void *(*function)(void *),
                 void *argument);

#endif
