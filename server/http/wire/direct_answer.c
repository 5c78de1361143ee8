/* Writes the head and the body of an answer as one text in the request's memory. */
#include "http/wire/direct_answer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/json_write.h"
#include "base/xml_write.h"
#include "http/exchange/request_metrics.h"
#include "http/exchange/request_state.h"
#include "http/exchange/s3api_error.h"
#include "http/exchange/trace.h"
#include "http/tls/tls_session.h"
#include "http/wire/handover.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "input/date.h"

/* Status line, Date, Content-Length and Connection, without the reason phrase. */
#define FRAME_BYTES 256
/* The head and the body of a problem for a connection without a request. */
#define PROBLEM_HEAD_BYTES 1024
#define PROBLEM_BODY_BYTES 1024
#define EVENTS             16

/* --- the text --- */

size_t direct_head_room(const struct answer *answer)
{
    size_t room = FRAME_BYTES + strlen(mhd_reason(answer->status));

    for (unsigned i = 0; i < answer->field_count; i++)
        room += strlen(answer->fields[i].name) + strlen(answer->fields[i].value) + strlen(": \r\n");
    return room;
}

/* A 204 has no Content-Length (RFC 9110 section 8.6). */
static size_t write_length(const struct answer *answer, char *out_text, size_t room)
{
    if (answer->status == 204)
        return 0;
    return (size_t)snprintf(out_text, room, "Content-Length: %llu\r\n",
                            (unsigned long long)answer->content_length);
}

size_t direct_head_write(const struct answer *answer, bool close, char *out_text, size_t room)
{
    size_t at = (size_t)snprintf(out_text, room, "HTTP/1.1 %u %s\r\n%s", answer->status,
                                 mhd_reason(answer->status), close ? "Connection: close\r\n" : "");
    char date[HTTP_DATE_SIZE];

    assert(answer->status >= 200 && answer->status <= 599);
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

/* Returns the length of the body; SIZE_MAX if some of it is not in memory. */
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

/* Returns false if the text cannot be written. */
static bool write_text(struct connection *connection, bool close)
{
    struct request_state *state = request_state(connection->request);
    const struct answer *answer = &state->answer;
    const size_t length = body_length(answer);
    const size_t room = direct_head_room(answer);
    char *text = length != SIZE_MAX ? request_allocate(connection->request, room + length) : NULL;
    size_t at;

    if (text == NULL)
        return false;
    at = direct_head_write(answer, close, text, room);
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

/* Sends as much as the socket takes. */
static void send_last(const struct connection *connection, const char *text, size_t length)
{
    if (connection->tls != NULL)
        tls_session_send_last(connection->tls, text, length);
    else
        (void)send(connection->descriptor, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Returns how many bytes the socket took; 0 if none now; -1 on failure. */
static ssize_t send_some(const struct connection *connection)
{
    ssize_t sent;

    if (connection->tls != NULL)
        return tls_session_send(connection->tls, connection->unsent, connection->unsent_bytes);
    sent = send(connection->descriptor, connection->unsent, connection->unsent_bytes,
                MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

/* Sends as much as the socket takes. */
static enum direct_result send_more(struct connection *connection)
{
    ssize_t sent;

    assert(connection->unsent != NULL && connection->unsent_bytes > 0);
    sent = send_some(connection);
    if (sent < 0)
        return DIRECT_FAILED;
    connection->unsent += sent;
    connection->unsent_bytes -= (size_t)sent;
    return connection->unsent_bytes == 0 ? DIRECT_SENT : DIRECT_WAITS;
}

static enum direct_result watch(struct connection *connection)
{
    struct mhd *mhd = connection->mhd;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = connection};

    assert(connection->unsent_bytes > 0);
    if ((connection->state != CONNECTION_RECEIVING &&
         request_state(connection->request)->kept == NULL) ||
        epoll_ctl(mhd->direct_epoll, EPOLL_CTL_ADD, connection->descriptor, &event) != 0)
        return DIRECT_FAILED;
    if (connection->state == CONNECTION_LIBRARY)
        mhd_suspend(connection, CONNECTION_SENDING);
    else
        connection_enter(connection, CONNECTION_SENDING);
    connections_answer_begin(&mhd->connections, connection, mhd->now_ms);
    return DIRECT_WAITS;
}

enum direct_result direct_answer_send(struct connection *connection, bool close)
{
    enum direct_result outcome;

    assert((connection->tls == NULL || close) && connection->unsent_bytes == 0);
    if (!write_text(connection, close))
        return DIRECT_FAILED;
    if (connection->tls != NULL) {
        send_last(connection, connection->unsent, connection->unsent_bytes);
        connection->unsent_bytes = 0;
        return DIRECT_SENT;
    }
    outcome = send_more(connection);
    return outcome == DIRECT_WAITS ? watch(connection) : outcome;
}

enum direct_result direct_text_send(struct connection *connection, const char *text, size_t length)
{
    enum direct_result outcome;

    assert(connection->unsent_bytes == 0 && length > 0);
    connection->unsent = text;
    connection->unsent_bytes = length;
    outcome = send_more(connection);
    return outcome == DIRECT_WAITS ? watch(connection) : outcome;
}

void direct_answers_run(void *context)
{
    const struct mhd *mhd = context;
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(mhd->direct_epoll, events, EVENTS, 0);

    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        const enum direct_result result = send_more(connection);

        assert(connection->state == CONNECTION_SENDING);
        if (result == DIRECT_WAITS)
            continue;
        epoll_ctl(mhd->direct_epoll, EPOLL_CTL_DEL, connection->descriptor, NULL);
        deadline_clear(&connection->deadline);
        handover_on_answered(connection, result == DIRECT_SENT);
    }
}

/* --- problems --- */

/* Returns false if it does not fit: out_text has PROBLEM_BODY_BYTES. */
static bool write_problem(enum problem_form form, enum problem problem, const char *detail,
                          const char *id, struct answer *answer, char *out_text)
{
    struct json json;
    struct xml_writer xml = {.text = {.bytes = NULL}};
    bool fits;

    assert(detail != NULL && id[0] != '\0');
    json_init(&json, false);
    if (form == PROBLEM_FORM_S3) {
        s3api_error_write(&xml, s3api_error_of(problem), detail, NULL, id);
        answer->status = s3api_error_status(s3api_error_of(problem));
        answer->content_length = xml.text.failed ? SIZE_MAX : xml.text.length;
    } else {
        json_object_begin(&json);
        problem_write(&json, problem, detail, id, form);
        json_object_end(&json);
        answer->status = problem_status(problem);
        answer->content_length = json.failed ? SIZE_MAX : json.length;
    }
    fits = answer->content_length <= PROBLEM_BODY_BYTES;
    if (fits)
        memcpy(out_text, form == PROBLEM_FORM_S3 ? (const char *)xml.text.bytes : json.text,
               answer->content_length);
    json_free(&json);
    xml_writer_free(&xml);
    return fits;
}

void direct_problem_send(const struct connection *connection, enum problem problem,
                         const char *detail)
{
    const struct request *request = connection->request;
    const enum problem_form form = request != NULL ? problem_form_of(request) : PROBLEM_FORM_PLAIN;
    const char *retry_after = problem_retry_after(problem);
    char text[PROBLEM_HEAD_BYTES + PROBLEM_BODY_BYTES];
    char body[PROBLEM_BODY_BYTES];
    char id[REQUEST_ID_SIZE];
    struct field fields[6];
    struct answer answer = {.fields = fields};
    size_t length;

    if (request != NULL)
        memcpy(id, request->id, sizeof(id));
    else
        trace_make_id(id);
    request_metrics_problem(problem);
    fields[answer.field_count++] = (struct field){"Cache-Control", "no-store"};
    fields[answer.field_count++] = (struct field){
        "Content-Type", form == PROBLEM_FORM_S3 ? XML_MEDIA_TYPE : PROBLEM_MEDIA_TYPE};
    fields[answer.field_count++] = (struct field){"X-Request-Id", id};
    if (retry_after != NULL)
        fields[answer.field_count++] = (struct field){"Retry-After", retry_after};
    if (form == PROBLEM_FORM_HUB)
        fields[answer.field_count++] = (struct field){"X-Error-Message", detail};
    if (form == PROBLEM_FORM_S3)
        fields[answer.field_count++] = (struct field){"x-amz-request-id", id};
    assert(answer.field_count <= sizeof(fields) / sizeof(fields[0]));
    if (!write_problem(form, problem, detail, id, &answer, body))
        return;
    length = direct_head_write(&answer, true, text, PROBLEM_HEAD_BYTES);
    memcpy(text + length, body, answer.content_length);
    send_last(connection, text, length + answer.content_length);
}
