/* Functions for other threads. Exchanges reach the fetch thread through a list behind a lock; from
 * then on only that thread touches them, until done. */
#include "remote/remote.h"

#include <assert.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "remote/fetch.h"

#define TIME_MS          30000
#define CONNECTIONS_MOST 1024

/* --- exchanges --- */

void remote_exchange_init(struct remote_exchange *exchange)
{
    memset(exchange, 0, sizeof(*exchange));
    exchange->body_descriptor = -1;
}

void remote_exchange_free(struct remote_exchange *exchange)
{
    free(exchange->answer);
    exchange->answer = NULL;
    exchange->answer_length = 0;
}

/* --- from other threads --- */

static struct remote_flight *new_flight(struct remote_exchange *exchange)
{
    struct remote_flight *flight = calloc(1, sizeof(*flight));
    const uint64_t time_ms = exchange->time_ms != 0 ? exchange->time_ms : TIME_MS;

    if (flight == NULL)
        return NULL;
    flight->exchange = exchange;
    flight->deadline_ms = clock_ms() + (int64_t)time_ms;
    return flight;
}

void remote_begin(struct remote *remote, struct remote_exchange *exchange)
{
    struct remote_flight *flight;
    bool is_stopping;

    assert(exchange->done != NULL && exchange->field_count <= REMOTE_FIELDS);
    assert(exchange->path[0] == '/');
    assert(exchange->take == NULL || (exchange->into == NULL && exchange->tries == 1));
    assert(exchange->flight == NULL);
    assert(exchange->progressed == NULL || (exchange->into != NULL && exchange->has_range));
    exchange->tried = 0;
    exchange->arrived = 0;
    exchange->begun = 0;
    exchange->answer = NULL;
    exchange->answer_length = 0;
    memset(&exchange->head, 0, sizeof(exchange->head));
    flight = new_flight(exchange);
    if (flight == NULL) {
        fetch_fail(exchange, REMOTE_FAILURE_STOPPED, "no memory for a request");
        return;
    }
    pthread_mutex_lock(&remote->lock);
    is_stopping = remote->is_stopping;
    if (!is_stopping) {
        exchange->flight = flight;
        atomic_fetch_add(&remote->waiting, 1);
        flight_queue_add(&remote->arrivals, flight);
        if (remote->is_asleep)
            curl_multi_wakeup(remote->multi);
        remote->is_asleep = false;
    }
    pthread_mutex_unlock(&remote->lock);
    if (is_stopping) {
        free(flight);
        fetch_fail(exchange, REMOTE_FAILURE_STOPPED, "the program is shutting down");
    }
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
};

static void wake_waiter(struct remote_exchange *exchange)
{
    struct waiter *waiter = exchange->context;

    pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    pthread_cond_signal(&waiter->changed);
    pthread_mutex_unlock(&waiter->lock);
}

enum zt_status remote_run(struct remote *remote, struct remote_exchange *exchange)
{
    struct waiter waiter = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .is_done = false};

    assert(exchange->done == NULL && exchange->context == NULL);
    exchange->done = wake_waiter;
    exchange->context = &waiter;
    remote_begin(remote, exchange);
    pthread_mutex_lock(&waiter.lock);
    /* The exchange's time limits the wait. */
    while (!waiter.is_done)
        pthread_cond_wait(&waiter.changed, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    pthread_cond_destroy(&waiter.changed);
    pthread_mutex_destroy(&waiter.lock);
    exchange->done = NULL;
    exchange->context = NULL;
    return exchange->status;
}

void remote_load(struct remote *remote, struct remote_load *out_load)
{
    out_load->running = atomic_load(&remote->running);
    out_load->waiting = atomic_load(&remote->waiting);
    out_load->allowed = atomic_load(&remote->allowed);
}

/* --- beginning and end --- */

static void initialise_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_ALL);
}

enum zt_status remote_prepare(struct zt_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct addrinfo *addresses = NULL;

    if (pthread_once(&once, initialise_curl) != 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "libcurl cannot be initialized");
    /* Loads the C library's modules for names, which are code. */
    if (getaddrinfo("localhost", NULL, NULL, &addresses) == 0)
        freeaddrinfo(addresses);
    return ZT_OK;
}

/* The one that libcurl was built to use. */
static const char *system_ca_file(void)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

    return info->age >= CURLVERSION_SEVENTH ? info->cainfo : NULL;
}

void remote_files(const char *ca_file, void (*visit)(void *context, const char *path),
                  void *context)
{
    static const char *const names[] = {"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf",
                                        "/etc/host.conf", "/etc/gai.conf"};

    if (ca_file == NULL)
        ca_file = system_ca_file();
    if (ca_file != NULL)
        visit(context, ca_file);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        visit(context, names[i]);
}

static bool copy_text(char **out_copy, const char *text)
{
    *out_copy = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out_copy != NULL;
}

static void free_remote(struct remote *remote)
{
    fetch_free_carriers(remote);
    if (remote->multi != NULL)
        curl_multi_cleanup(remote->multi);
    pthread_mutex_destroy(&remote->lock);
    free(remote->ca_file);
    free(remote->proxy);
    free(remote);
}

/* Else each connection would fail, as if the other side were wrong. */
static bool has_certificates(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[256];
    bool has = false;

    if (file == NULL)
        return false;
    while (!has && fgets(line, sizeof(line), file) != NULL)
        has = strncmp(line, "-----BEGIN ", 11) == 0 && strstr(line, "CERTIFICATE-----") != NULL;
    fclose(file);
    return has;
}

static enum zt_status fill(struct remote *remote, const struct remote_options *options,
                           struct zt_error *error)
{
    const char *ca_file = options->ca_file != NULL ? options->ca_file : system_ca_file();
    unsigned connections = options->connections;

    if (options->ca_file != NULL && !has_certificates(options->ca_file))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "cannot read the certificates of %s",
                       options->ca_file);
    if (connections == 0 || connections > CONNECTIONS_MOST)
        connections = connections == 0 ? 1 : CONNECTIONS_MOST;
    remote->system_proxy = options->system_proxy;
    remote->multi = curl_multi_init();
    if (remote->multi == NULL || !copy_text(&remote->ca_file, ca_file) ||
        !copy_text(&remote->proxy, options->proxy) || !fetch_make_carriers(remote, connections))
        return zt_fail_memory(error, "connections");
    curl_multi_setopt(remote->multi, CURLMOPT_MAXCONNECTS, (long)connections);
    pace_init(&remote->pace, connections);
    atomic_store(&remote->allowed, connections);
    remote->seed = (uint64_t)clock_wall_ns() | 1;
    return ZT_OK;
}

enum zt_status remote_start(const struct remote_options *options, struct remote **out_remote,
                            struct zt_error *error)
{
    struct remote *remote;
    enum zt_status status = remote_prepare(error);

    if (status != ZT_OK)
        return status;
    remote = calloc(1, sizeof(*remote));
    if (remote == NULL)
        return zt_fail_memory(error, "requests to other services");
    pthread_mutex_init(&remote->lock, NULL);
    status = fill(remote, options, error);
    if (status == ZT_OK && thread_start(&remote->thread, "remote", fetch_work, remote) != 0)
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "no thread for requests");
    if (status != ZT_OK) {
        free_remote(remote);
        return status;
    }
    *out_remote = remote;
    return ZT_OK;
}

void remote_interrupt(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    remote->is_stopping = true;
    curl_multi_wakeup(remote->multi);
    pthread_mutex_unlock(&remote->lock);
}

void remote_stop(struct remote *remote)
{
    if (remote == NULL)
        return;
    remote_interrupt(remote);
    pthread_join(remote->thread, NULL);
    free_remote(remote);
}
