/* The thread of a loop: it sleeps in one epoll set over the daemon, posts and watched descriptors,
 * and runs what is due.
 *
 * Posts are a stack that threads push to without a lock and the loop takes as a whole; only the
 * push that finds it empty writes to the eventfd. */
#include "http/wire/loop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "http/wire/mhd.h"

/* Descriptors of the outer set: the daemon, posts, and one or two watches. */
#define EVENTS 8

struct watch {
    struct watch *next;
    void (*ready)(void *context);
    void *context;
};

struct loop {
    struct mhd *mhd;
    int epoll;
    int event;
    _Atomic(struct job *) posts;
    atomic_uint posting; /* threads inside loop_post */
    _Atomic(struct watch *) watches;
    atomic_bool drain_asked;
    atomic_bool stop_asked;
    bool drained;
    bool cut;
    pthread_t thread;
};

/* --- posts --- */

static void kick(struct loop *loop)
{
    const uint64_t one = 1;
    ssize_t written;

    do
        written = write(loop->event, &one, sizeof(one));
    while (written < 0 && errno == EINTR);
}

void loop_post(struct loop *loop, struct job *job)
{
    struct job *head;

    /* The loop may run the job, and end, before this function does: loop_stop waits for those that
     * are still in it. */
    atomic_fetch_add(&loop->posting, 1);
    head = atomic_load_explicit(&loop->posts, memory_order_relaxed);
    do
        job->next = head;
    while (!atomic_compare_exchange_weak_explicit(&loop->posts, &head, job, memory_order_release,
                                                  memory_order_relaxed));
    /* Who pushed onto a stack that was not empty knows that a kick is under way. */
    if (head == NULL)
        kick(loop);
    atomic_fetch_sub(&loop->posting, 1);
}

static struct job *take_posts(struct loop *loop)
{
    struct job *newest = atomic_exchange_explicit(&loop->posts, NULL, memory_order_acquire);
    struct job *oldest = NULL;

    while (newest != NULL) {
        struct job *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void run_posts(struct loop *loop)
{
    struct job *job = take_posts(loop);

    while (job != NULL) {
        /* done may free the job. */
        struct job *next = job->next;

        job->done(job);
        job = next;
    }
}

static void on_event(void *context)
{
    struct loop *loop = context;
    uint64_t count;

    /* Emptied before the posts are taken: a post that comes in between kicks again. */
    while (read(loop->event, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

/* --- watches --- */

int loop_watch(struct loop *loop, int descriptor, void (*ready)(void *context), void *context)
{
    struct watch *watch = malloc(sizeof(*watch));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};

    if (watch == NULL)
        return -1;
    *watch =
        (struct watch){.next = atomic_load(&loop->watches), .ready = ready, .context = context};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
        free(watch);
        return -1;
    }
    while (!atomic_compare_exchange_weak(&loop->watches, &watch->next, watch))
        ;
    return 0;
}

static void free_watches(struct loop *loop)
{
    struct watch *watch = atomic_load(&loop->watches);

    while (watch != NULL) {
        struct watch *next = watch->next;

        free(watch);
        watch = next;
    }
}

/* --- the thread --- */

static void wait_for_events(struct loop *loop)
{
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(loop->epoll, events, EVENTS, mhd_timeout_ms(loop->mhd));

    for (int i = 0; i < count; i++) {
        const struct watch *watch = events[i].data.ptr;

        /* The daemon's descriptor has no watch of its own: mhd_run follows anyway. */
        if (watch != NULL)
            watch->ready(watch->context);
    }
}

static bool should_go_on(struct loop *loop)
{
    if (atomic_load(&loop->drain_asked) && !loop->drained) {
        loop->drained = true;
        mhd_drain(loop->mhd);
    }
    if (!atomic_load(&loop->stop_asked))
        return true;
    if (!loop->cut) {
        loop->cut = true;
        mhd_cut(loop->mhd);
    }
    /* A worker may still write to what a waiting request owns. */
    return mhd_waiting(loop->mhd) > 0;
}

static void *loop_main(void *argument)
{
    struct loop *loop = argument;

    while (should_go_on(loop)) {
        wait_for_events(loop);
        run_posts(loop);
        mhd_run(loop->mhd);
    }
    mhd_stop(loop->mhd);
    run_posts(loop);
    return NULL;
}

static int start_thread(struct loop *loop)
{
    sigset_t all;
    sigset_t before;
    int status;

    /* Signals reach the program as a descriptor that one loop watches, never as an interruption of
     * these threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = pthread_create(&loop->thread, NULL, loop_main, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static void free_loop(struct loop *loop)
{
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->event >= 0)
        close(loop->event);
    free_watches(loop);
    free(loop);
}

static struct loop *new_loop(void)
{
    struct loop *loop = calloc(1, sizeof(*loop));

    if (loop == NULL)
        return NULL;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll < 0 || loop->event < 0 || loop_watch(loop, loop->event, on_event, loop) != 0) {
        free_loop(loop);
        return NULL;
    }
    return loop;
}

struct loop *loop_start(struct server *server, int listen_socket, char *error, size_t error_size)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    struct loop *loop = new_loop();

    if (loop == NULL) {
        snprintf(error, error_size, "cannot make an event loop: %s", strerrordesc_np(errno));
        return NULL;
    }
    loop->mhd = mhd_start(server, loop, listen_socket, error, error_size);
    if (loop->mhd == NULL)
        goto failed;
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, mhd_descriptor(loop->mhd), &event) != 0 ||
        start_thread(loop) != 0) {
        snprintf(error, error_size, "cannot start an event loop: %s", strerrordesc_np(errno));
        mhd_stop(loop->mhd);
        goto failed;
    }
    return loop;

failed:
    free_loop(loop);
    return NULL;
}

void loop_drain(struct loop *loop)
{
    atomic_store(&loop->drain_asked, true);
    kick(loop);
}

unsigned loop_active(const struct loop *loop)
{
    return mhd_active(loop->mhd);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop_asked, true);
    kick(loop);
    pthread_join(loop->thread, NULL);
    while (atomic_load(&loop->posting) > 0)
        sched_yield();
    free_loop(loop);
}
