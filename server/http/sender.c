/* Which response for which answer; measured on loopback beside nginx:
 *
 *   memory                                        buffer
 *   up to 64 KiB, in the page cache               buffer or vector over the mapping (sendfile costs more than it saves)
 *   up to 64 KiB, not in the page cache           read by a worker, then a buffer
 *   larger, in the page cache, send buffer capped buffer or vector over the mapping (uncapped it starves other
 * connections) larger, else                                  sendfile from a descriptor of its own what can neither be
 * mapped nor sent from one  a reader that copies
 */
#include "http/sender.h"

#include <assert.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "http/problem.h"
#include "http/request_state.h"

/* Up to this an answer is copied or mapped, never sent by sendfile. */
#define SMALL_BYTES (64u * 1024)
/* Pages of a large answer that are asked about. */
#define SAMPLES 16
/* What the reader is asked for at a time. */
#define READER_BLOCK (64u * 1024)
#define PAGE_BYTES   4096u

/* --- what the page cache holds --- */

static const uint8_t *segment_bytes(const struct segment *segment)
{
    const uint8_t *mapping;

    if (segment->kind == SEGMENT_MEMORY)
        return segment->bytes;
    mapping = zt_source_map(segment->source);
    return mapping != NULL ? mapping + segment->offset : NULL;
}

static bool pages_resident(const uint8_t *bytes, uint64_t length)
{
    unsigned char pages[SMALL_BYTES / PAGE_BYTES + 1];
    const uintptr_t first = (uintptr_t)bytes & ~(uintptr_t)(PAGE_BYTES - 1);
    const size_t span = (size_t)((uintptr_t)bytes + length - first);
    const size_t count = (span + PAGE_BYTES - 1) / PAGE_BYTES;

    assert(count <= sizeof(pages));
    /* An older kernel's page may be larger; then the call fails and the pages count as absent. */
    if (mincore((void *)first, span, pages) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if ((pages[i] & 1) == 0)
            return false;
    return true;
}

/* Exactly for small segments, by samples for large ones. */
static bool segment_is_warm(const struct segment *segment)
{
    const uint8_t *bytes;

    if (segment->kind == SEGMENT_MEMORY)
        return true;
    bytes = segment_bytes(segment);
    if (bytes == NULL)
        return false;
    if (segment->length <= SMALL_BYTES)
        return pages_resident(bytes, segment->length);
    for (uint64_t i = 0; i < SAMPLES; i++)
        if (!pages_resident(bytes + segment->length / SAMPLES * i, 1))
            return false;
    return pages_resident(bytes + segment->length - 1, 1);
}

static bool answer_is_warm(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++)
        if (!segment_is_warm(&answer->segments[i]))
            return false;
    return true;
}

static bool answer_is_mappable(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++)
        if (segment_bytes(&answer->segments[i]) == NULL)
            return false;
    return true;
}

/* --- reading what is small and cold --- */

/* On a worker: touches what the waiting request owns. */
static void load(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;
    uint8_t *at = state->loaded;

    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        if (segment->kind == SEGMENT_MEMORY)
            memcpy(at, segment->bytes, (size_t)segment->length);
        else if (zt_source_read_at(segment->source, segment->offset, at, (size_t)segment->length, &state->load_error) !=
                 ZT_OK)
            return;
        at += segment->length;
    }
    zt_error_clear(&state->load_error);
}

static enum outcome take_loaded(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;

    if (state->load_error.status != ZT_OK) {
        problem_reply_error(request, &state->load_error);
        state->ranged = false;
        exchange_answer(request);
        return OUTCOME_READY;
    }
    answer->segments[0] =
        (struct segment){.kind = SEGMENT_MEMORY, .length = answer->content_length, .bytes = state->loaded};
    answer->segment_count = 1;
    return OUTCOME_READY;
}

enum outcome sender_load(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;

    if (state->loaded != NULL)
        return take_loaded(request);
    if (answer->segment_count == 0 || answer->content_length > SMALL_BYTES || answer_is_warm(answer))
        return OUTCOME_READY;
    state->loaded = request_allocate(request, (size_t)answer->content_length);
    /* Without memory the response reads for itself. */
    return state->loaded != NULL ? request_work(request, load) : OUTCOME_READY;
}

/* --- responses --- */

static ssize_t refuse_to_read(void *context, uint64_t position, char *buffer, size_t size)
{
    (void)context;
    (void)position;
    (void)buffer;
    (void)size;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *buffer_response(const void *bytes, uint64_t length)
{
    /* The library's parameter is not const, yet it never writes to a persistent buffer. */
    return MHD_create_response_from_buffer((size_t)length, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
}

/* HEAD and 304: the length that is told is of a body which is not sent. */
static struct MHD_Response *bodiless_response(uint64_t length)
{
    return length == 0 ? buffer_response("", 0)
                       : MHD_create_response_from_callback(length, 1, refuse_to_read, NULL, NULL);
}

static struct MHD_Response *mapped_response(const struct answer *answer)
{
    struct MHD_Response *response;
    struct MHD_IoVec *parts;

    if (answer->segment_count == 1)
        return buffer_response(segment_bytes(&answer->segments[0]), answer->segments[0].length);
    parts = calloc(answer->segment_count, sizeof(*parts));
    if (parts == NULL)
        return NULL;
    for (size_t i = 0; i < answer->segment_count; i++)
        parts[i] = (struct MHD_IoVec){segment_bytes(&answer->segments[i]), (size_t)answer->segments[i].length};
    /* Which the library copies. */
    response = MHD_create_response_from_iovec(parts, (unsigned)answer->segment_count, NULL, NULL);
    free(parts);
    return response;
}

/* NULL when there is no descriptor to be had: one more of them for each connection, at most. */
static struct MHD_Response *descriptor_response(const struct segment *segment)
{
    struct MHD_Response *response;
    int descriptor;

    if (segment->kind != SEGMENT_SOURCE)
        return NULL;
    descriptor = zt_source_descriptor(segment->source);
    if (descriptor >= 0)
        descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0)
        return NULL;
    response = MHD_create_response_from_fd_at_offset64(segment->length, descriptor, segment->offset);
    if (response == NULL)
        close(descriptor);
    return response;
}

static ssize_t read_segment(const struct segment *segment, uint64_t offset, char *buffer, size_t size)
{
    const uint64_t left = segment->length - offset;
    const size_t length = left < size ? (size_t)left : size;

    if (segment->kind == SEGMENT_MEMORY)
        memcpy(buffer, segment->bytes + offset, length);
    else if (zt_source_read_at(segment->source, segment->offset + offset, buffer, length, NULL) != ZT_OK)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    return (ssize_t)length;
}

static ssize_t read_segments(void *context, uint64_t position, char *buffer, size_t size)
{
    const struct answer *answer = context;

    for (size_t i = 0; i < answer->segment_count; i++) {
        if (position < answer->segments[i].length)
            return read_segment(&answer->segments[i], position, buffer, size);
        position -= answer->segments[i].length;
    }
    return MHD_CONTENT_READER_END_OF_STREAM;
}

/* Whether sending from a mapping keeps the loop from neither disk nor other connections. */
static bool mapping_is_good(const struct request *request, const struct answer *answer)
{
    if (answer->content_length <= SMALL_BYTES)
        return true;
    return request->server->config->limits.send_buffer_bytes > 0 && answer_is_warm(answer);
}

static struct MHD_Response *body_response(struct request *request, struct answer *answer)
{
    const bool mappable = answer_is_mappable(answer);
    struct MHD_Response *response = NULL;

    if (mappable && mapping_is_good(request, answer))
        return mapped_response(answer);
    if (answer->segment_count == 1)
        response = descriptor_response(&answer->segments[0]);
    if (response == NULL && mappable)
        response = mapped_response(answer);
    if (response == NULL)
        response = MHD_create_response_from_callback(answer->content_length, READER_BLOCK, read_segments, answer, NULL);
    return response;
}

/* What the library puts before and behind the fields: status line, Date, Content-Length, the empty line. */
static uint64_t frame_bytes(const struct answer *answer)
{
    static const char frame[] = "HTTP/1.1 200 \r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n";
    uint64_t bytes = sizeof(frame) - 1 + strlen(MHD_get_reason_phrase_for(answer->status));

    for (uint64_t left = answer->content_length; left > 9; left /= 10)
        bytes++;
    return bytes;
}

/* Adds to *bytes what the fields take on the wire. */
static bool add_fields(struct MHD_Response *response, const struct answer *answer, bool close, uint64_t *bytes)
{
    for (unsigned i = 0; i < answer->field_count; i++) {
        const struct field *field = &answer->fields[i];

        if (MHD_add_response_header(response, field->name, field->value) != MHD_YES)
            return false;
        *bytes += strlen(field->name) + strlen(": \r\n") + strlen(field->value);
    }
    *bytes += close ? strlen("Connection: close\r\n") : 0;
    return !close || MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
}

struct MHD_Response *sender_response(struct request *request, bool close)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;
    struct MHD_Response *response =
        answer->segment_count == 0 ? bodiless_response(answer->content_length) : body_response(request, answer);

    if (response == NULL)
        return NULL;
    state->head_bytes = frame_bytes(answer);
    if (!add_fields(response, answer, close || answer->close, &state->head_bytes)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}
