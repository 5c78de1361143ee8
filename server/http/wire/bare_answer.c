/* Nothing was sent before on the connection that could fill the socket's buffer: an answer of a few
 * KiB fits at once. */
#include "http/wire/bare_answer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "http/exchange/request_state.h"
#include "http/fields/conditional.h"
#include "http/wire/connections.h"

#define PARTS_MOST 8
/* Status line, Date, Content-Length and Connection, beside the reason. */
#define FRAME_BYTES 256

static size_t head_room(const struct answer *answer, const char *reason)
{
    size_t room = FRAME_BYTES + strlen(reason);

    for (unsigned i = 0; i < answer->field_count; i++)
        room += strlen(answer->fields[i].name) + strlen(answer->fields[i].value) + strlen(": \r\n");
    return room;
}

/* RFC 9110 section 8.6: none with 204. */
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
    char date[30];

    http_date_format(time(NULL), date);
    at += (size_t)snprintf(out_text + at, room - at, "Date: %s\r\n", date);
    at += write_length(answer, out_text + at, room - at);
    for (unsigned i = 0; i < answer->field_count; i++)
        at += (size_t)snprintf(out_text + at, room - at, "%s: %s\r\n", answer->fields[i].name,
                               answer->fields[i].value);
    return at + (size_t)snprintf(out_text + at, room - at, "\r\n");
}

/* False when there are more parts, or others than memory. */
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

bool bare_answer_send(struct request *request, const char *reason)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;
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
