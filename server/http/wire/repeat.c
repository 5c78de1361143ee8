/* The request passes through the same functions at its beginning and its end as any other, so the
 * log and the metrics do not differ. */
#include "http/wire/repeat.h"

#include <assert.h>

#include "base/clock.h"
#include "http/exchange/request_state.h"
#include "http/tls/tls_session.h"
#include "http/wire/bulk.h"
#include "http/wire/connections.h"
#include "http/wire/direct_answer.h"
#include "http/wire/handler.h"
#include "http/wire/loop.h"
#include "http/wire/mhd_state.h"
#include "http/wire/response_cache.h"

/* Returns true if the library would answer now, on a connection that stays open. */
static bool is_ready(const struct connection *connection)
{
    const struct mhd *mhd = connection->mhd;

    return connection->state == CONNECTION_LIBRARY && connection->request == NULL &&
           (connection->tls == NULL || !tls_session_asks_client(connection->tls)) &&
           !connection->is_surplus && !mhd->cutting &&
           !atomic_load_explicit(&mhd->server->draining, memory_order_relaxed);
}

static bool is_up_to_date(struct mhd *mhd, const struct kept_answer *answer)
{
    handler_poll_changes(mhd, clock_ns());
    return kept_answer_is_valid(answer, loop_lease(mhd->loop), mhd->now_ms);
}

void repeat_end(struct connection *connection, bool whole)
{
    struct mhd *mhd = connection->mhd;

    assert(request_state(connection->request)->kept != NULL);
    if (whole)
        connections_idle_begin(&mhd->connections, connection, mhd->now_ms);
    connection_end_request(connection, whole ? ENDING_WHOLE : connection_failure(connection));
}

static enum tap_verdict give(struct connection *connection, struct kept_answer *answer)
{
    struct request *request = connection->request;
    size_t length;
    const char *text = kept_answer_text(answer, &length);

    kept_answer_give(answer, request);
    bulk_make_way(connection->mhd->bulks, connection->mhd->now_ms);
    request_enter(request_state(request), STAGE_BODY);
    request_enter(request_state(request), STAGE_QUEUED);
    switch (direct_text_send(connection, text, length)) {
    case DIRECT_SENT:
        repeat_end(connection, true);
        return TAP_TAKEN;
    case DIRECT_WAITS:
        return TAP_TAKEN;
    case DIRECT_FAILED:
        break;
    }
    connection->unsent_bytes = 0;
    repeat_end(connection, false);
    return TAP_END;
}

enum tap_verdict repeat_answer(struct connection *connection, const void *bytes, size_t length)
{
    struct mhd *mhd = connection->mhd;
    struct kept_answer *answer = response_cache_find(&mhd->kept, connection, bytes, length);

    assert(mhd_is_own_thread(mhd) && length > 0);
    if (answer == NULL || !is_ready(connection) || !is_up_to_date(mhd, answer) ||
        connection_begin_request(connection, kept_answer_target(answer)) == NULL)
        return TAP_PASS;
    return give(connection, answer);
}
