/* One text for head and body, in the request's memory. */
#include "http/wire/own_answers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "http/exchange/request_state.h"
#include "http/fields/conditional.h"
#include "http/wire/connections.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"

/* Status line, Date, Content-Length and Connection, without the reason phrase. */
#define FRAME_BYTES 256
#define EVENTS      16

/* --- the text --- */

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

static size_t write_head(const struct answer *answer, const char *reason, bool close,
                         char *out_text, size_t room)
{
    size_t at = (size_t)snprintf(out_text, room, "HTTP/1.1 %u %s\r\n%s", answer->status, reason,
                                 close ? "Connection: close\r\n" : "");
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

/* The length of the body; SIZE_MAX if it is not all in memory. */
static size_t body_length(const struct answer *answer)
{
    size_t length = 0;

    for (size_t i = 0; i < answer->segment_count; i++) {
        if (answer->segments[i].kind != SEGMENT_MEMORY)
            return SIZE_MAX;
        length += (size_t)answer->segments[i].length;
    }
    return length;
}

/* False if it cannot be written. */
static bool write_text(struct connection *connection, bool close)
{
    struct request_state *state = request_state(connection->request);
    const struct answer *answer = &state->answer;
    const char *reason = mhd_reason(answer->status);
    const size_t length = body_length(answer);
    const size_t room = head_room(answer, reason);
    char *text = length != SIZE_MAX ? request_allocate(connection->request, room + length) : NULL;
    size_t at;

    if (text == NULL)
        return false;
    at = write_head(answer, reason, close, text, room);
    state->head_bytes = at;
    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        memcpy(text + at, segment->bytes, (size_t)segment->length);
        at += (size_t)segment->length;
    }
    connection->unsent = text;
    connection->unsent_bytes = at;
    return true;
}

/* --- sending --- */

/* As much as the socket takes. */
static enum own_answer send_more(struct connection *connection)
{
    const ssize_t sent = send(connection->descriptor, connection->unsent, connection->unsent_bytes,
                              MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? OWN_ANSWER_WAITS : OWN_ANSWER_FAILED;
    connection->unsent += sent;
    connection->unsent_bytes -= (size_t)sent;
    return connection->unsent_bytes == 0 ? OWN_ANSWER_SENT : OWN_ANSWER_WAITS;
}

static enum own_answer watch(struct connection *connection)
{
    struct mhd *mhd = connection->mhd;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = connection};

    if (!connection->suspended ||
        epoll_ctl(mhd->own_answers.epoll, EPOLL_CTL_ADD, connection->descriptor, &event) != 0)
        return OWN_ANSWER_FAILED;
    connection->streaming = true;
    connections_answer_begin(&mhd->connections, connection, mhd->now_ms);
    return OWN_ANSWER_WAITS;
}

enum own_answer own_answer_send(struct connection *connection, bool close)
{
    enum own_answer outcome = OWN_ANSWER_FAILED;

    assert(connection->tls == NULL && connection->unsent_bytes == 0);
    if (write_text(connection, close))
        outcome = send_more(connection);
    return outcome == OWN_ANSWER_WAITS ? watch(connection) : outcome;
}

void own_answers_run(void *context)
{
    const struct own_answers *answers = context;
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(answers->epoll, events, EVENTS, 0);

    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        const enum own_answer outcome = send_more(connection);

        if (outcome == OWN_ANSWER_WAITS)
            continue;
        epoll_ctl(answers->epoll, EPOLL_CTL_DEL, connection->descriptor, NULL);
        connection->streaming = false;
        deadline_clear(&connection->deadline);
        answers->ended(connection, outcome == OWN_ANSWER_SENT);
    }
}

/* --- the set --- */

int own_answers_init(struct own_answers *answers,
                     void (*ended)(struct connection *connection, bool whole))
{
    *answers = (struct own_answers){.epoll = epoll_create1(EPOLL_CLOEXEC), .ended = ended};
    return answers->epoll < 0 ? -1 : 0;
}

void own_answers_end(struct own_answers *answers)
{
    if (answers->epoll >= 0)
        close(answers->epoll);
    answers->epoll = -1;
}
