/* Which response carries which answer. Measured on loopback beside nginx, in plain text:
 *
 *   memory                                  buffer
 *   one part of a file, of 4 MiB or more,   past the library (bulk.h), if nothing forbids it
 *   or 1 MiB to other machines, or of more
 *   than 64 KiB not in the page cache
 *   up to 64 KiB, in the page cache         buffer or vector over the mapping (sendfile costs more
 *                                           than it saves)
 *   up to 64 KiB, not in the page cache     read by a worker, then a buffer
 *   larger, in the page cache, send buffer  buffer or vector over the mapping (uncapped, it starves
 *   capped                                  other connections)
 *   larger, one part of a file              sendfile from a descriptor of its own
 *   anything else                           a reader that copies what workers read ahead
 *
 * With TLS nothing is sent from a mapping, since GnuTLS would be killed by SIGBUS when a file was
 * truncated, nor from a descriptor, which the library would read in pieces of 4 KiB:
 *
 *   memory in one piece                     buffer
 *   up to 64 KiB                            read into a buffer: here if it is in memory or in the
 *                                           page cache, else by a worker
 *   larger                                  a reader that copies what workers read ahead */
#include "http/wire/sender.h"

#include <assert.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/wire/bulk.h"
#include "http/wire/connections.h"
#include "http/wire/elsewhere.h"
#include "http/wire/mapped_files.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/page_cache.h"
#include "http/wire/readahead.h"

/* Up to this an answer is copied or mapped, never sent by sendfile. */
#define SMALL_BYTES PAGE_CACHE_SMALL_BYTES
/* What the library needs in a connection's memory for itself, rounded up. */
#define MEMORY_RESERVE 1024u
/* The most segments of a small answer that the loop looks at itself. */
#define SMALL_PARTS 64

/* --- how it is sent --- */

/* An upper bound on the bytes of further requests that the library has already read. */
static uint64_t pipelined_bytes(const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct connection *connection = request->connection;
    const uint64_t received = connection_received(connection);
    const uint64_t known = connection->request_bytes + state->header_bytes + state->body_received;

    return received >= known ? received - known : UINT64_MAX;
}

/* The library copies the list of parts into the connection's memory, beside the request, the head
 * of the answer and what it has read of further requests. If the list does not fit, the library
 * unlocks a mutex that it has not locked, and aborts the program when it destroys it: no estimate
 * here may be less than what is used. */
static bool parts_fit(struct request *request, const struct answer *answer)
{
    const struct request_state *state = request_state_const(request);
    uint64_t used =
        MEMORY_RESERVE + state->header_bytes + (uint64_t)state->header_count * HEADER_FIELD_BYTES;
    const uint64_t pipelined = answer->segment_count > 1 ? pipelined_bytes(request) : 0;

    if (answer->segment_count <= 1)
        return true;
    for (unsigned i = 0; i < answer->field_count; i++)
        used += strlen(answer->fields[i].name) + strlen(answer->fields[i].value) + strlen(": \r\n");
    if (pipelined > CONNECTION_MEMORY || used + pipelined > CONNECTION_MEMORY)
        return false;
    /* Parsed cookies need more memory than their bytes. */
    return answer->segment_count <=
               (CONNECTION_MEMORY - used - pipelined) / sizeof(struct MHD_IoVec) &&
           request_header(request, "Cookie") == NULL;
}

/* Whether the loop can send from memory or a mapping without waiting for a disk or starving other
 * connections. */
static bool mapping_is_good(struct request *request, const struct answer *answer)
{
    const bool small = answer->content_length <= SMALL_BYTES;

    if (!parts_fit(request, answer) || (small && answer->segment_count > SMALL_PARTS))
        return false;
    if (answer_is_memory(answer))
        return true;
    return (small || config_number(&request->server->config->limits.send_buffer_bytes) > 0) &&
           answer_is_mappable(answer) && page_cache_holds(request->connection->mhd, answer) &&
           mapped_files_enter(&request->connection->mhd->mapped, request);
}

static bool has_descriptor(const struct answer *answer)
{
    return answer->segment_count == 1 && answer->segments[0].kind == SEGMENT_SOURCE &&
           zt_source_descriptor(answer->segments[0].source) >= 0;
}

/* --- reading what is small and not in the page cache --- */

/* On a worker, or with TLS on the loop; touches only what the request owns. */
static void load(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;
    uint8_t *at = state->loaded;

    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        if (segment->kind == SEGMENT_MEMORY)
            memcpy(at, segment->bytes, (size_t)segment->length);
        else if (zt_source_read_at(segment->source, segment->offset, at, (size_t)segment->length,
                                   &state->load_error) != ZT_OK)
            return;
        at += segment->length;
    }
    zt_error_clear(&state->load_error);
}

static enum outcome answer_problem(struct request *request, const struct zt_error *error)
{
    struct request_state *state = request_state(request);

    state->sending = SENDING_MAPPED;
    problem_reply_error(request, error);
    state->ranged = false;
    exchange_answer(request);
    return OUTCOME_READY;
}

static enum outcome answer_out_of_memory(struct request *request)
{
    struct zt_error error;

    zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to read an answer");
    return answer_problem(request, &error);
}

static enum outcome begin_load(struct request *request)
{
    struct request_state *state = request_state(request);

    state->loaded = request_allocate(request, (size_t)state->answer.content_length);
    return state->loaded != NULL ? request_work_here(request, load) : answer_out_of_memory(request);
}

static enum outcome take_loaded(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;

    if (state->load_error.status != ZT_OK)
        return answer_problem(request, &state->load_error);
    /* Not in the list of the representation, which others may share. */
    answer->segments = state->answer_segments;
    answer->segments[0] = (struct segment){
        .kind = SEGMENT_MEMORY, .length = answer->content_length, .bytes = state->loaded};
    answer->segment_count = 1;
    return OUTCOME_READY;
}

/* --- reading ahead --- */

static enum outcome begin_ahead(struct request *request)
{
    struct request_state *state = request_state(request);

    state->ahead = readahead_begin(request, request->connection->mhd);
    if (state->ahead == NULL)
        return answer_out_of_memory(request);
    state->sending = SENDING_AHEAD;
    return OUTCOME_WAITING;
}

/* Waits until the first window is full. If reading fails, the client gets a problem; later it would
 * be too late for a status. */
static enum outcome take_ahead(struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct zt_error *error = readahead_error(state->ahead);

    return error != NULL ? answer_problem(request, error) : OUTCOME_READY;
}

/* --- with TLS --- */

static bool can_load_here(struct mhd *mhd, const struct answer *answer)
{
    return answer->segment_count <= SMALL_PARTS &&
           (answer_is_memory(answer) ||
            (answer_is_mappable(answer) && page_cache_holds(mhd, answer)));
}

static enum outcome load_here(struct request *request)
{
    struct request_state *state = request_state(request);

    state->loaded = request_allocate(request, (size_t)state->answer.content_length);
    if (state->loaded != NULL)
        load(request);
    return state->loaded != NULL ? take_loaded(request) : answer_out_of_memory(request);
}

static enum outcome load_for_tls(struct request *request)
{
    const struct answer *answer = &request_state_const(request)->answer;

    if (answer->segment_count == 1 && answer_is_memory(answer))
        return OUTCOME_READY;
    if (answer->content_length > SMALL_BYTES)
        return begin_ahead(request);
    return can_load_here(request->connection->mhd, answer) ? load_here(request)
                                                           : begin_load(request);
}

/* All of its bytes are here. */
static enum outcome choose(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;

    if (request->connection->tls != NULL)
        return load_for_tls(request);
    if (bulk_is_worthwhile(request)) {
        state->sending = SENDING_BULK;
        return OUTCOME_READY;
    }
    if (mapping_is_good(request, answer))
        return OUTCOME_READY;
    if (answer->content_length <= SMALL_BYTES)
        return begin_load(request);
    if (!has_descriptor(answer))
        return begin_ahead(request);
    state->sending = SENDING_DESCRIPTOR;
    return OUTCOME_READY;
}

enum outcome sender_load(struct request *request)
{
    struct request_state *state = request_state(request);
    enum elsewhere brought;

    if (state->ahead != NULL)
        return take_ahead(request);
    if (state->loaded != NULL)
        return take_loaded(request);
    if (state->answer.segment_count == 0)
        return OUTCOME_READY;
    brought = elsewhere_bring(request);
    if (brought == ELSEWHERE_WAITS)
        return OUTCOME_WAITING;
    if (brought == ELSEWHERE_FAILED)
        return answer_problem(request, elsewhere_error(request));
    if (brought == ELSEWHERE_READ)
        return begin_ahead(request);
    if (brought == ELSEWHERE_HERE)
        return choose(request);
    state->sending = SENDING_PARTS;
    return OUTCOME_READY;
}

/* --- responses --- */

static ssize_t read_nothing(void *context, uint64_t position, char *buffer, size_t size)
{
    (void)context;
    (void)position;
    (void)buffer;
    (void)size;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *buffer_response(const void *bytes, uint64_t length)
{
    /* The parameter is not const, but the library never writes to a persistent buffer. */
    return MHD_create_response_from_buffer((size_t)length, (void *)(uintptr_t)bytes,
                                           MHD_RESPMEM_PERSISTENT);
}

/* Without a length the library would send one anyway, or the framing of a missing body, unless the
 * connection ends with the answer. */
static struct MHD_Response *lengthless_response(void)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL, NULL);

    if (response != NULL)
        MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    return response;
}

/* For HEAD and 304: the length is that of a body that is not sent. */
static struct MHD_Response *bodiless_response(uint64_t length)
{
    if (length == ANSWER_LENGTH_UNKNOWN)
        return lengthless_response();
    return length == 0 ? buffer_response("", 0)
                       : MHD_create_response_from_callback(length, 1, read_nothing, NULL, NULL);
}

static struct MHD_Response *vector_response(const struct answer *answer)
{
    struct MHD_IoVec *parts = calloc(answer->segment_count, sizeof(*parts));
    struct MHD_Response *response;

    if (parts == NULL)
        return NULL;
    for (size_t i = 0; i < answer->segment_count; i++)
        parts[i] = (struct MHD_IoVec){segment_bytes(&answer->segments[i]),
                                      (size_t)answer->segments[i].length};
    response = MHD_create_response_from_iovec(parts, (unsigned)answer->segment_count, NULL, NULL);
    free(parts);
    return response;
}

static struct MHD_Response *mapped_response(const struct answer *answer)
{
    if (answer->segment_count > 1)
        return vector_response(answer);
    return buffer_response(segment_bytes(&answer->segments[0]), answer->segments[0].length);
}

/* Takes one more descriptor for the connection; without it, the answer comes from the mapping. */
static struct MHD_Response *descriptor_response(struct request *request)
{
    const struct answer *answer = &request_state(request)->answer;
    const struct segment *segment = &answer->segments[0];
    const int descriptor = fcntl(zt_source_descriptor(segment->source), F_DUPFD_CLOEXEC, 0);
    struct MHD_Response *response;

    if (descriptor < 0)
        return segment_bytes(segment) != NULL &&
                       mapped_files_enter(&request->connection->mhd->mapped, request)
                   ? mapped_response(answer)
                   : NULL;
    response =
        MHD_create_response_from_fd_at_offset64(segment->length, descriptor, segment->offset);
    if (response == NULL)
        close(descriptor);
    return response;
}

/* Ends the connection before the announced length is reached. */
static ssize_t cut(struct request *request)
{
    const struct zt_error *error = readahead_error(request_state_const(request)->ahead);

    if (error != NULL)
        log_write(LOG_LEVEL_ERROR, "request %s: its answer is cut: %s", request->id,
                  error->message);
    mhd_end_now(request->connection);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t read_ahead(void *context, uint64_t position, char *buffer, size_t size)
{
    struct request *request = context;
    const ssize_t taken = readahead_take(request_state(request)->ahead, position, buffer, size);

    if (taken == 0)
        mhd_suspend(request->connection);
    return taken >= 0 ? taken : cut(request);
}

/* The library asks when the head is sent, and again when the body is, but never gets a byte: an
 * error is the only end that it accepts then. */
static ssize_t read_bulk(void *context, uint64_t position, char *buffer, size_t size)
{
    struct request *request = context;

    (void)buffer;
    (void)size;
    assert(position == 0);
    (void)position;
    if (request_state(request)->bulk == NULL && bulk_begin(request))
        return 0;
    if (request_state(request)->bulk != NULL)
        bulk_finish(request);
    mhd_end_now(request->connection);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *body_response(struct request *request)
{
    const struct request_state *state = request_state_const(request);

    switch (state->sending) {
    case SENDING_MAPPED:
        break;
    case SENDING_DESCRIPTOR:
        return descriptor_response(request);
    case SENDING_BULK:
    case SENDING_PARTS:
        return MHD_create_response_from_callback(state->answer.content_length, 1, read_bulk,
                                                 request, NULL);
    case SENDING_AHEAD:
        return MHD_create_response_from_callback(
            state->answer.content_length, readahead_block(state->ahead), read_ahead, request, NULL);
    }
    return mapped_response(&state->answer);
}

/* The length of what the library adds to the fields: status line, Date, Content-Length, and the
 * empty line. */
static uint64_t frame_bytes(const struct answer *answer)
{
    static const char frame[] =
        "HTTP/1.1 200 \r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n";
    uint64_t bytes = sizeof(frame) - 1 + strlen(MHD_get_reason_phrase_for(answer->status));

    for (uint64_t left = answer->content_length; left > 9; left /= 10)
        bytes++;
    return bytes;
}

/* Adds the length of the fields to *bytes. */
static bool add_fields(struct MHD_Response *response, const struct answer *answer, bool close,
                       uint64_t *bytes)
{
    for (unsigned i = 0; i < answer->field_count; i++) {
        const struct field *field = &answer->fields[i];

        if (MHD_add_response_header(response, field->name, field->value) != MHD_YES)
            return false;
        *bytes += strlen(field->name) + strlen(": \r\n") + strlen(field->value);
    }
    *bytes += close ? strlen("Connection: close\r\n") : 0;
    return !close ||
           MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
}

struct MHD_Response *sender_response(struct request *request, bool close)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;
    struct MHD_Response *response = answer->segment_count == 0
                                        ? bodiless_response(answer->content_length)
                                        : body_response(request);

    if (response == NULL)
        return NULL;
    connection_begin_answer(request->connection, answer->content_length > SMALL_BYTES);
    if (answer->content_length <= SMALL_BYTES)
        bulk_make_way(request->connection->mhd->bulks, request->connection->mhd->now_ms);
    state->closes = close;
    state->head_bytes = frame_bytes(answer);
    if (!add_fields(response, answer, close || answer->close, &state->head_bytes)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

static struct MHD_Response *copied_response(const struct segment *segment)
{
    const size_t length = (size_t)segment->length;
    uint8_t *bytes = malloc(length);
    struct MHD_Response *response = NULL;

    if (bytes == NULL)
        return NULL;
    if (segment->kind == SEGMENT_MEMORY)
        memcpy(bytes, segment->bytes, length);
    if (segment->kind == SEGMENT_MEMORY ||
        zt_source_read_at(segment->source, segment->offset, bytes, length, NULL) == ZT_OK)
        response = MHD_create_response_from_buffer(length, bytes, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(bytes);
    return response;
}

struct MHD_Response *sender_copy(struct request *request)
{
    const struct answer *answer = &request_state(request)->answer;
    struct MHD_Response *response = answer->segment_count == 0
                                        ? bodiless_response(answer->content_length)
                                        : copied_response(&answer->segments[0]);
    uint64_t head_bytes = 0;

    assert(answer->segment_count <= 1);
    if (response != NULL && !add_fields(response, answer, answer->close, &head_bytes)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

void sender_release(struct MHD_Response *response)
{
    MHD_destroy_response(response);
}
