/* A new thread inherits the signal mask of the one that creates it. */
#include "base/thread.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

/* The kernel's limit, without NUL. */
#define NAME_MAX_LENGTH 15

int thread_start(pthread_t *out_thread, const char *name, void *(*function)(void *), void *argument)
{
    sigset_t all;
    sigset_t before;
    int error;

    assert(strlen(name) <= NAME_MAX_LENGTH);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(out_thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(*out_thread, name);
    return error;
}
