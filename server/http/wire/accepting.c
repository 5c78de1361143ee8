/* Accepts clients with the reserve in mind (http/limits/reserve.h), and gives them to the
 * library. */
#include "http/wire/accepting.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/metrics.h"
#include "http/wire/direct_answer.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"

/* How long clients wait before they are refused; descriptors may become free in that time. */
#define STARVED_WAIT_MS 2000
/* The maximum number of connections accepted, or refused, per turn of the loop. */
#define ACCEPTED_MOST 64

/* --- without descriptors --- */

static void refuse_starved(void *context, int descriptor)
{
    const struct connection refused = {.descriptor = descriptor, .kept = -1};
    const struct mhd *mhd = context;

    assert(descriptor >= 0);
    metric_add(METRIC_CONNECTIONS_REFUSED_LIMIT, 1);
    if (mhd->server->tls == NULL)
        direct_problem_send(&refused, PROBLEM_OVERLOADED,
                            "the server has no file descriptors left");
}

void accepting_note_starved(struct mhd *mhd)
{
    static _Atomic uint64_t next_ms;

    if (mhd->starved_ms != 0)
        return;
    mhd->starved_ms = mhd->now_ms;
    if (connections_warning_is_due(&next_ms, mhd->now_ms))
        log_write(LOG_LEVEL_WARN,
                  "all file descriptors are in use (ulimit -n, LimitNOFILE): new clients wait, and "
                  "receive a 503 after %d s",
                  STARVED_WAIT_MS / 1000);
}

static void refuse_waiting(struct mhd *mhd, int listening)
{
    assert(mhd->starved_ms != 0);
    if (mhd->now_ms - mhd->starved_ms < STARVED_WAIT_MS)
        return;
    for (unsigned i = 0; i < ACCEPTED_MOST; i++)
        if (!reserve_refuse(&mhd->reserve, listening, refuse_starved, mhd))
            break;
}

/* Accepts a client and gives it to the library. Returns false with errno if no client waits or no
 * descriptors are left. */
static bool accept_client(struct mhd *mhd, int listening)
{
    struct sockaddr_storage peer;
    socklen_t length;
    const int descriptor = reserve_accept(listening, &peer, &length);
    const int os_error = errno;

    assert(listening >= 0 && mhd_is_own_thread(mhd));
    if (descriptor < 0 && reserve_is_needed(os_error)) {
        accepting_note_starved(mhd);
        refuse_waiting(mhd, listening);
    }
    errno = os_error;
    if (descriptor < 0)
        return false;
    if (mhd->starved_ms != 0)
        mhd->starved_ms = mhd->now_ms;
    mhd_add(mhd, descriptor, (const struct sockaddr *)&peer, length);
    return true;
}

void accepting_serve(struct mhd *mhd, int listening)
{
    assert(mhd->starved_ms != 0 || mhd->connections.first == NULL);
    reserve_fill(&mhd->reserve);
    for (unsigned i = 0; i < ACCEPTED_MOST; i++) {
        if (listening < 0 || !reserve_is_awaited(listening)) {
            if (mhd->connections.first == NULL)
                mhd->starved_ms = 0;
            return;
        }
        if (!accept_client(mhd, listening))
            return;
    }
}

/* --- the second listening socket --- */

void accepting_on_s3_client(void *context)
{
    assert(((struct mhd *)context)->s3_socket >= 0);
    ((struct mhd *)context)->s3_is_awaited = true;
}

void accepting_take_s3(struct mhd *mhd)
{
    unsigned accepted = 0;

    assert(mhd->s3_socket >= 0);
    mhd->is_accepting_s3 = true;
    while (accepted < ACCEPTED_MOST && accept_client(mhd, mhd->s3_socket))
        accepted++;
    mhd->is_accepting_s3 = false;
    if (accepted < ACCEPTED_MOST && (errno == EAGAIN || errno == EWOULDBLOCK))
        mhd->s3_is_awaited = false;
}
