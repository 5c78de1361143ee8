/* A new thread inherits the signal mask of its creator. */
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/* The kernel's limit and NUL. */
#define NAME_SIZE 16

struct beginning {
    void *(*function)(void *);
    void *argument;
    char name[NAME_SIZE];
};

/* A thread sets its own name: setting another thread's name writes a file, which the sandbox
 * forbids. */
static void *begin(void *argument)
{
    const struct beginning beginning = *(struct beginning *)argument;

    free(argument);
    pthread_setname_np(pthread_self(), beginning.name);
    return beginning.function(beginning.argument);
}

static _Thread_local bool is_hurried;

bool lock_is_held(pthread_mutex_t *lock)
{
    return pthread_mutex_trylock(lock) == EBUSY;
}

void thread_forbid_waiting(void)
{
    is_hurried = true;
}

bool thread_may_wait(void)
{
    return !is_hurried;
}

int thread_start(pthread_t *out_thread, const char *name, void *(*function)(void *), void *argument)
{
    struct beginning *beginning = malloc(sizeof(*beginning));
    sigset_t blocked;
    sigset_t before;
    int error;

    if (beginning == NULL)
        return ENOMEM;
    assert(strlen(name) < NAME_SIZE);
    *beginning = (struct beginning){.function = function, .argument = argument};
    strcpy(beginning->name, name);
    sigfillset(&blocked);
    /* A signal raised by an instruction cannot stay pending: if it is blocked, the kernel ends the
     * program instead of calling the handler of code that reads from a mapping. */
    sigdelset(&blocked, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    error = pthread_create(out_thread, NULL, begin, beginning);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        free(beginning);
    return error;
}

void thread_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, unsigned wait_ms)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(wait_ms % 1000) * CLOCK_NS_PER_MS;
    until.tv_sec += wait_ms / 1000 + until.tv_nsec / CLOCK_NS_PER_S;
    until.tv_nsec %= CLOCK_NS_PER_S;
    pthread_cond_timedwait(condition, lock, &until);
}
