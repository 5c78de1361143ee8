/* The loop's thread waits on one epoll set (daemon, mailbox and watched descriptors) and does the
 * work that is due. */
#include "http/wire/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mailbox.h"
#include "base/thread.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"

/* Events per wait: the daemon, the mailbox, and watched descriptors. */
#define EVENTS 8

struct watch {
    struct watch *next;
    void (*ready)(void *context);
    void *context;
};

struct loop {
    struct mhd *mhd;
    int epoll;
    struct mailbox mailbox; /* jobs to be done on this thread */
    struct lease *lease;    /* replaced by a job */
    _Atomic(struct watch *) watches;
    atomic_bool reload_asked;
    atomic_bool drain_asked;
    atomic_bool stop_asked;
    atomic_uint turns_asked;
    atomic_uint turns_made;
    atomic_bool drained;
    bool cut;
    bool is_watched; /* epoll reports events of the daemon */
    pthread_t thread;
};

static void run_mail(struct loop *loop)
{
    struct mail *mail = mailbox_is_empty(&loop->mailbox) ? NULL : mailbox_take(&loop->mailbox);

    while (mail != NULL) {
        struct job *job = job_of(mail);

        /* done may free the job. */
        mail = mail->next;
        job->done(job);
    }
}

static void on_mail(void *context)
{
    mailbox_silence(context);
}

/* --- watches --- */

/* On failure the watch is freed. */
static int add_watch(struct loop *loop, int descriptor, uint32_t events, struct watch *watch)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    assert(descriptor >= 0 && watch->ready != NULL);
    watch->next = atomic_load(&loop->watches);
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
        free(watch);
        return -1;
    }
    while (!atomic_compare_exchange_weak(&loop->watches, &watch->next, watch))
        ;
    return 0;
}

static struct watch *new_watch(void (*ready)(void *context), void *context)
{
    struct watch *watch = malloc(sizeof(*watch));

    assert(ready != NULL);
    if (watch != NULL)
        *watch = (struct watch){.ready = ready, .context = context};
    return watch;
}

int loop_watch(struct loop *loop, int descriptor, void (*ready)(void *context), void *context)
{
    struct watch *watch = new_watch(ready, context);

    return watch != NULL ? add_watch(loop, descriptor, EPOLLIN, watch) : -1;
}

int loop_watch_edges(struct loop *loop, int descriptor, void (*ready)(void *context), void *context)
{
    struct watch *watch = new_watch(ready, context);

    return watch != NULL ? add_watch(loop, descriptor, EPOLLIN | EPOLLET, watch) : -1;
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

/* Watches the daemon, except while a client cannot be accepted because no descriptors are left: it
 * would wake the loop endlessly. */
static void watch_daemon(struct loop *loop)
{
    const bool is_watched = !mhd_is_starved(loop->mhd);
    struct epoll_event event = {.events = is_watched ? EPOLLIN : 0, .data.ptr = NULL};

    if (is_watched == loop->is_watched)
        return;
    loop->is_watched = is_watched;
    epoll_ctl(loop->epoll, EPOLL_CTL_MOD, mhd_descriptor(loop->mhd), &event);
}

static void wait_for_events(struct loop *loop)
{
    struct epoll_event events[EVENTS];
    int count;

    watch_daemon(loop);
    count = epoll_wait(loop->epoll, events, EVENTS, mhd_timeout_ms(loop->mhd));

    for (int i = 0; i < count; i++) {
        const struct watch *watch = events[i].data.ptr;

        /* The daemon has no watch, since mhd_run follows anyway. */
        if (watch != NULL)
            watch->ready(watch->context);
        else
            loop->mhd->progressed = true;
    }
}

static bool should_continue(struct loop *loop)
{
    const unsigned turns = atomic_load_explicit(&loop->turns_asked, memory_order_relaxed);

    if (atomic_load_explicit(&loop->turns_made, memory_order_relaxed) != turns)
        atomic_store(&loop->turns_made, turns);
    if (atomic_load(&loop->reload_asked) && atomic_exchange(&loop->reload_asked, false))
        mhd_reload(loop->mhd);
    if (atomic_load(&loop->drain_asked) && !atomic_load(&loop->drained)) {
        mhd_drain(loop->mhd);
        atomic_store(&loop->drained, true);
    }
    if (!atomic_load(&loop->stop_asked))
        return true;
    if (!loop->cut) {
        loop->cut = true;
        mhd_cut(loop->mhd);
    }
    /* Workers may still write to memory of waiting requests. */
    return loop->mhd->waiting > 0;
}

static void *loop_main(void *argument)
{
    struct loop *loop = argument;

    mhd_enter_thread(loop->mhd);
    thread_forbid_waiting();
    log_gather();
    while (should_continue(loop)) {
        wait_for_events(loop);
        run_mail(loop);
        mhd_run(loop->mhd);
        log_flush();
    }
    mhd_stop(loop->mhd);
    run_mail(loop);
    log_flush();
    return NULL;
}

struct mailbox *loop_mailbox(struct loop *loop)
{
    return &loop->mailbox;
}

void loop_set_lease(struct loop *loop, struct lease *lease)
{
    lease_send(lease, &loop->mailbox, &loop->lease);
}

struct lease *loop_lease(const struct loop *loop)
{
    return loop->lease;
}

static void free_loop(struct loop *loop)
{
    if (loop->lease != NULL)
        lease_end(loop->lease);
    if (loop->epoll >= 0)
        close(loop->epoll);
    mailbox_close(&loop->mailbox);
    free_watches(loop);
    free(loop);
}

static struct loop *new_loop(const struct server *server)
{
    struct loop *loop = calloc(1, sizeof(*loop));

    if (loop == NULL)
        return NULL;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (server->access != NULL)
        loop->lease = lease_new(server->access);
    if (!mailbox_open(&loop->mailbox) || loop->epoll < 0 ||
        (loop->lease == NULL && server->access != NULL) ||
        loop_watch(loop, loop->mailbox.descriptor, on_mail, &loop->mailbox) != 0) {
        free_loop(loop);
        return NULL;
    }
    return loop;
}

struct loop *loop_start(struct server *server, int listen_socket, int s3_socket, char *error,
                        size_t error_size)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    struct loop *loop = new_loop(server);

    if (loop == NULL) {
        snprintf(error, error_size, "cannot create an event loop: %s", strerrordesc_np(errno));
        return NULL;
    }
    loop->mhd = mhd_start(server, loop, listen_socket, s3_socket, error, error_size);
    if (loop->mhd == NULL)
        goto failed;
    loop->is_watched = true;
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, mhd_descriptor(loop->mhd), &event) != 0 ||
        thread_start(&loop->thread, "loop", loop_main, loop) != 0) {
        snprintf(error, error_size, "cannot start an event loop: %s", strerrordesc_np(errno));
        mhd_stop(loop->mhd);
        goto failed;
    }
    return loop;

failed:
    free_loop(loop);
    return NULL;
}

void loop_reload(struct loop *loop)
{
    atomic_store(&loop->reload_asked, true);
    mailbox_ring(&loop->mailbox);
}

bool loop_has_turned(struct loop *loop)
{
    const unsigned asked = atomic_load(&loop->turns_asked);

    /* Ask once, however often the loop is found not to have turned. */
    if (atomic_load(&loop->turns_made) != asked)
        return false;
    atomic_store(&loop->turns_asked, asked + 1);
    mailbox_ring(&loop->mailbox);
    return true;
}

void loop_drain(struct loop *loop)
{
    atomic_store(&loop->drain_asked, true);
    mailbox_ring(&loop->mailbox);
}

bool loop_is_drained(const struct loop *loop)
{
    return atomic_load(&loop->drained);
}

unsigned loop_active(const struct loop *loop)
{
    return atomic_load_explicit(&loop->mhd->active, memory_order_relaxed);
}

void loop_stop(struct loop *loop)
{
    assert(pthread_equal(pthread_self(), loop->thread) == 0);
    atomic_store(&loop->stop_asked, true);
    mailbox_ring(&loop->mailbox);
    pthread_join(loop->thread, NULL);
    free_loop(loop);
}
