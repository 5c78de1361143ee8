/* Bodies that bypass the library, and answers as text. Nothing sent just before can have filled the
 * socket's buffer, so an answer of a few KiB fits at once. */
#include "http/wire/bypass.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "http/exchange/request_metrics.h"
#include "http/exchange/request_state.h"
#include "http/fields/conditional.h"
#include "http/wire/intake.h"
#include "http/wire/loop.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/tls_session.h"

#define PARTS_MOST 8
/* Status line, Date, Content-Length and Connection, without the reason phrase. */
#define FRAME_BYTES 256

/* --- answers --- */

static size_t head_room(const struct answer *answer, const char *reason)
{
    size_t room = FRAME_BYTES + strlen(reason);

    for (unsigned i = 0; i < answer->field_count; i++)
        room += strlen(answer->fields[i].name) + strlen(answer->fields[i].value) + strlen(": \r\n");
    return room;
}

/* RFC 9110 section 8.6: a 204 has none. */
static size_t write_length(const struct answer *answer, char *out_text, size_t room)
{
    if (answer->status == 204)
        return 0;
    return (size_t)snprintf(out_text, room, "Content-Length: %llu\r\n",
                            (unsigned long long)answer->content_length);
}

static size_t write_head(const struct answer *answer, const char *reason, char *out_text,
                         size_t room)
{
    size_t at = (size_t)snprintf(out_text, room, "HTTP/1.1 %u %s\r\nConnection: close\r\n",
                                 answer->status, reason);
    char date[HTTP_DATE_SIZE];

    http_date_format(time(NULL), date);
    at += (size_t)snprintf(out_text + at, room - at, "Date: %s\r\n", date);
    at += write_length(answer, out_text + at, room - at);
    for (unsigned i = 0; i < answer->field_count; i++)
        at += (size_t)snprintf(out_text + at, room - at, "%s: %s\r\n", answer->fields[i].name,
                               answer->fields[i].value);
    at += (size_t)snprintf(out_text + at, room - at, "\r\n");
    assert(at < room);
    return at;
}

/* False if there are too many segments, or if one is not in memory. */
static bool add_parts(const struct answer *answer, struct iovec parts[PARTS_MOST], size_t *count)
{
    if (answer->segment_count > PARTS_MOST - *count)
        return false;
    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        if (segment->kind != SEGMENT_MEMORY)
            return false;
        parts[(*count)++] =
            (struct iovec){(void *)(uintptr_t)segment->bytes, (size_t)segment->length};
    }
    return true;
}

/* False if the answer was not sent completely. */
static bool send_answer(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;
    const char *reason = mhd_reason(answer->status);
    const size_t room = head_room(answer, reason);
    struct iovec parts[PARTS_MOST] = {{request_allocate(request, room), 0}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1};
    size_t length = 0;

    if (parts[0].iov_base == NULL || !add_parts(answer, parts, &message.msg_iovlen))
        return false;
    parts[0].iov_len = write_head(answer, reason, parts[0].iov_base, room);
    state->head_bytes = parts[0].iov_len;
    for (size_t i = 0; i < message.msg_iovlen; i++)
        length += parts[i].iov_len;
    return sendmsg(request->connection->descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           (ssize_t)length;
}

static void send_last(const struct connection *connection, const char *text, size_t length)
{
    if (connection->tls != NULL)
        tls_session_send_last(connection->tls, text, length);
    else
        (void)send(connection->descriptor, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void bypass_send_problem(const struct connection *connection, const struct bypass_problem *problem,
                         const char *id)
{
    static const char head[] = "HTTP/1.1 %u %s\r\n"
                               "Connection: close\r\n"
                               "Cache-Control: no-store\r\n"
                               "Content-Type: application/problem+json\r\n"
                               "X-Request-Id: %s\r\n"
                               "%s"
                               "Content-Length: %zu\r\n\r\n";
    static const char body[] = "{\"type\":\"/problems/%s\",\"title\":\"%s\",\"status\":%u,"
                               "\"detail\":\"%s\",\"code\":\"%s\",\"request_id\":\"%s\"}";
    const unsigned status = problem_status(problem->problem);
    const char *code = problem_code(problem->problem);
    char json[512];
    char text[1024];
    const int json_length =
        snprintf(json, sizeof(json), body, code, problem_title(problem->problem), status,
                 problem->detail, code, id);
    int length;

    assert(json_length > 0 && (size_t)json_length < sizeof(json));
    request_metrics_problem(problem->problem);
    length = snprintf(text, sizeof(text), head, status, problem->reason, id, problem->fields,
                      (size_t)json_length);
    assert(length > 0 && (size_t)length + (size_t)json_length < sizeof(text));
    memcpy(text + length, json, (size_t)json_length);
    send_last(connection, text, (size_t)length + (size_t)json_length);
}

/* --- bodies --- */

/* The library finds the last byte of the body, which is refused, and so closes the connection. */
static void end_answered(struct connection *connection)
{
    connection->lingers = true;
    shutdown(connection->descriptor, SHUT_WR);
    mhd_resume(connection);
}

/* Makes the library find the end of the stream, in the middle of the body as far as it knows, so
 * that it closes the connection. */
static void end_connection(struct connection *connection)
{
    shutdown(connection->descriptor, SHUT_RDWR);
    mhd_resume(connection);
}

void bypass_answer(struct connection *connection)
{
    struct request *request = connection->request;

    exchange_answer(request);
    connection->answered = send_answer(request);
    if (connection->answered)
        request_enter_phase(request_state(request), PHASE_QUEUED);
}

void bypass_advance(struct connection *connection)
{
    assert(connection->bypassed && connection->suspended);
    if (exchange_advance(connection->request) == OUTCOME_WAITING)
        return;
    bypass_answer(connection);
    if (connection->answered)
        end_answered(connection);
    else
        end_connection(connection);
}

static bool on_received(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd_update_clock(mhd);
    return connections_body_piece(&mhd->connections, connection,
                                  request_state(connection->request)->body_received, mhd->now_ms);
}

static void on_paused(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd_update_clock(mhd);
    connections_body_pause(connection, mhd->now_ms);
}

static void on_awaited(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd_update_clock(mhd);
    connections_body_resume(&mhd->connections, connection, mhd->now_ms);
}

static void on_ended(void *context, struct connection *connection, bool whole)
{
    const struct mhd *mhd = context;

    deadline_clear(&connection->deadline);
    /* While all connections are being cut, nobody would receive the result. */
    if (whole && !mhd->cutting)
        bypass_advance(connection);
    else
        end_connection(connection);
}

struct intake_set *bypass_intakes_new(struct mhd *mhd)
{
    const struct intake_events events = {mhd, on_received, on_paused, on_awaited, on_ended};

    return intake_set_new(loop_mailbox(mhd->loop), &events);
}

void bypass_take_body(struct connection *connection, struct request *request)
{
    assert(bypass_is_worthwhile(request));
    if (!intake_begin(connection->mhd->intakes, request, bypass_body_left(request)))
        return;
    connection->bypassed = true;
    mhd_suspend(connection);
}
