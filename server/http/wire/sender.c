/* Chooses a response for each answer. The limits were measured on loopback and compared with nginx,
 * in plain text:
 *
 *   one piece of memory                        buffer
 *   one piece of a file, in the page cache,    buffer over the mapping (sendfile costs more than it
 *   up to 64 KiB, or up to 4 MiB if the send   saves)
 *   buffer is capped (uncapped, it would
 *   starve other connections)
 *   other answers of more than 64 KiB, if      past the library (bulk.h)
 *   the connection and the pieces allow it
 *   other answers up to 64 KiB                 copied into a buffer: here if they are in memory or
 *                                              in the page cache, else by a worker
 *   anything else                              a reader that copies bytes that workers read ahead
 *
 * With TLS, answers are sent neither from a mapping, since SIGBUS would kill GnuTLS if the file was
 * truncated, nor past the library. No response has several pieces or a descriptor: the library
 * would need its small memory for the list of pieces, and with TLS it would read a descriptor in
 * pieces of 4 KiB. */
#include "http/wire/sender.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "http/body/page_cache.h"
#include "http/body/page_memory.h"
#include "http/body/piece.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/wire/bulk.h"
#include "http/wire/connections.h"
#include "http/wire/file_changes.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/readahead.h"
#include "http/wire/remote_body.h"

/* The maximum number of segments of a small answer that the loop examines itself. */
#define SMALL_PARTS 64
/* Below this size, sending through the library costs less than giving it a new connection. */
#define BULK_LEAST ((uint64_t)1 << 20)

/* --- reading what is small and not in the page cache --- */

/* Copies the answer to memory. Runs on a worker or on the loop, and touches only memory of the
 * request. */
static void load(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;
    uint8_t *at = state->loaded;

    assert(state->loaded != NULL);
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

    state->sending = SENDING_BUFFER;
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

    assert(state->loaded == NULL && state->answer.content_length <= SENDER_SMALL_BYTES);
    state->loaded = request_allocate(request, (size_t)state->answer.content_length);
    return state->loaded != NULL ? request_work_here(request, load) : answer_out_of_memory(request);
}

static enum outcome take_loaded(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;

    assert(state->loaded != NULL);
    if (state->load_error.status != ZT_OK)
        return answer_problem(request, &state->load_error);
    /* Do not change the representation's list of segments, which other requests may share. */
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

    assert(state->ahead == NULL && state->answer.segment_count > 0);
    state->ahead = readahead_begin(request, request->connection->mhd);
    if (state->ahead == NULL)
        return answer_out_of_memory(request);
    state->sending = SENDING_AHEAD;
    return OUTCOME_WAITING;
}

/* Waits until the first window is full. If reading fails now, the client gets a problem; later the
 * status would already be sent. */
static enum outcome take_ahead(struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct zt_error *error = readahead_error(state->ahead);

    return error != NULL ? answer_problem(request, error) : OUTCOME_READY;
}

/* --- past the library --- */

/* Returns true if the answer has no slices or begins in the page cache. Workers read slices that
 * are not, and skip the gaps between them. */
static bool begins_warm(const struct answer *answer)
{
    const struct zt_slice *slice;

    assert(answer->segment_count > 0);
    for (size_t i = 0; i < answer->segment_count; i++) {
        segment_file(&answer->segments[i], &slice);
        if (slice != NULL)
            return window_is_warm(answer, (struct place){0});
    }
    return true;
}

static bool is_piece_of_file(const struct answer *answer)
{
    return answer->segment_count == 1 && answer->segments[0].kind == SEGMENT_SOURCE &&
           zt_source_descriptor(answer->segments[0].source) >= 0;
}

/* Returns true if sending past the library is worth it. For a peer on the same machine even a long
 * piece of one file goes through the library, because copying from a mapping is cheaper still.
 * There are two exceptions. If the piece is not in memory, workers read it for bulk.c, while the
 * library would make the loop wait for the disk. If the send buffer is not capped, the library
 * would copy the whole piece at once. */
static bool is_large(const struct connection *connection, const struct answer *answer,
                     bool is_resident)
{
    const struct config *config = connection->mhd->server->config;

    assert(answer->segment_count > 0);
    if (answer->content_length <= SENDER_SMALL_BYTES)
        return false;
    if (answer->segment_count > 1)
        return true;
    if (!is_piece_of_file(answer))
        return answer->content_length >= BULK_LEAST;
    return !is_resident || config_number(&config->limits.send_buffer_bytes) == 0 ||
           answer->content_length >= (connection->is_local ? SENDER_MAPPED_MOST : BULK_LEAST);
}

/* Returns true for an HTTP/1.0 connection that stays open: only the library can keep it. */
static bool keeps_old_connection(struct request *request)
{
    const char *options = request_header(request, "Connection");

    return request_state_const(request)->http_1_0 && options != NULL &&
           strcasestr(options, "keep-alive") != NULL;
}

/* Returns true if the answer can be sent past the library: the connection is plain text, the
 * request is a GET without a body, and the library has read nothing beyond it. An empty line would
 * be ignored. */
static bool can_bypass(struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct connection *connection = request->connection;

    return connection->tls == NULL && !keeps_old_connection(request) && !connection->is_surplus &&
           request->method == METHOD_GET && state->body_length == 0 &&
           connection->raw.state == RAW_START && pieces_can_send(&state->answer);
}

/* is_resident: all of its bytes are known to be in memory. */
static bool is_for_bulk(struct request *request, bool is_resident)
{
    const struct answer *answer = &request_state_const(request)->answer;

    return is_large(request->connection, answer, is_resident) && can_bypass(request) &&
           begins_warm(answer);
}

/* --- choosing --- */

static enum outcome load_here(struct request *request)
{
    struct request_state *state = request_state(request);
    const bool is_one_piece = state->answer.segment_count == 1;
    enum outcome outcome;

    assert(state->loaded == NULL && state->answer.content_length <= SENDER_SMALL_BYTES);
    state->loaded = request_allocate(request, (size_t)state->answer.content_length);
    if (state->loaded == NULL)
        return answer_out_of_memory(request);
    load(request);
    outcome = take_loaded(request);
    /* It was read in this turn, so it can be cached, as if it were mapped. */
    if (is_one_piece)
        state->loaded = NULL;
    return outcome;
}

/* Looks only at answers that may be mapped or copied on the loop. */
static bool is_resident(const struct request *request)
{
    const struct answer *answer = &request_state_const(request)->answer;
    const bool may_be_mapped = request->connection->tls == NULL && answer->segment_count == 1;
    struct mhd *mhd = request->connection->mhd;

    return answer->content_length <= (may_be_mapped ? SENDER_MAPPED_MOST : SENDER_SMALL_BYTES) &&
           answer->segment_count <= SMALL_PARTS &&
           answer_is_resident(answer, &mhd->pages, mhd->now_ms);
}

/* Tries to send a resident answer from the mapping of its file. Returns true on success. */
static bool map(struct request *request)
{
    const struct answer *answer = &request_state_const(request)->answer;
    const struct config *config = request->server->config;

    return request->connection->tls == NULL && answer->segment_count == 1 &&
           (answer->content_length <= SENDER_SMALL_BYTES ||
            config_number(&config->limits.send_buffer_bytes) > 0) &&
           mapped_files_enter(&request->connection->mhd->mapped, request);
}

/* Chooses the way for an answer whose bytes are all local. */
static enum outcome choose(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;
    bool is_bulk = is_for_bulk(request, true);
    bool resident = false;

    assert(answer->segment_count > 0 && state->sending == SENDING_BUFFER);
    /* Most long answers are sent that way whether they are resident or not: to ask about 4 MiB may
     * take 0.1 ms. */
    if (!is_bulk) {
        resident = is_resident(request);
        is_bulk = !resident && is_for_bulk(request, false);
    }
    if (is_bulk) {
        state->sending = SENDING_BULK;
        return OUTCOME_READY;
    }
    if (answer->segment_count == 1 && answer_is_memory(answer))
        return OUTCOME_READY;
    if (resident && map(request))
        return OUTCOME_READY;
    if (answer->content_length > SENDER_SMALL_BYTES)
        return begin_ahead(request);
    return resident ? load_here(request) : begin_load(request);
}

/* Fetches the beginning of an answer from a remote store. */
static enum outcome fetch(struct request *request)
{
    struct request_state *state = request_state(request);

    switch (remote_body_fetch(request, can_bypass)) {
    case REMOTE_BODY_LOCAL:
        break;
    case REMOTE_BODY_WAITS:
        return OUTCOME_WAITING;
    case REMOTE_BODY_STREAM:
        state->sending = SENDING_BULK;
        return OUTCOME_READY;
    case REMOTE_BODY_READ:
        return begin_ahead(request);
    case REMOTE_BODY_FAILED:
        return answer_problem(request, remote_body_error(state->remote));
    }
    return choose(request);
}

enum outcome sender_load(struct request *request)
{
    struct request_state *state = request_state(request);

    assert(state->stage == STAGE_ANSWER);
    if (state->ahead != NULL)
        return take_ahead(request);
    if (state->loaded != NULL)
        return take_loaded(request);
    if (state->answer.segment_count == 0)
        return OUTCOME_READY;
    /* The server has these threads only for a remote store. */
    return request->server->waiters != NULL ? fetch(request) : choose(request);
}

void sender_give_up(struct request *request, int64_t waited_ms)
{
    const struct request_state *state = request_state_const(request);

    if (state->remote != NULL)
        remote_body_give_up(state->remote, waited_ms);
    if (state->ahead != NULL)
        readahead_give_up(state->ahead, waited_ms);
}

bool sender_end(struct request *request)
{
    const struct request_state *state = request_state(request);

    if (state->sending == SENDING_MAPPED)
        mapped_files_leave(&request->connection->mhd->mapped, request);
    if (state->bulk != NULL)
        bulk_free(state->bulk);
    return state->ahead == NULL || readahead_end(state->ahead);
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

/* Makes a response without a length. The library would otherwise add one, or the framing of a
 * missing body, unless the connection ends with the answer. */
static struct MHD_Response *lengthless_response(void)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL, NULL);

    if (response != NULL)
        MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    return response;
}

/* For HEAD and 304: announces a length but sends no body. */
static struct MHD_Response *bodiless_response(uint64_t length)
{
    if (length == ANSWER_LENGTH_UNKNOWN)
        return lengthless_response();
    return length == 0 ? buffer_response("", 0)
                       : MHD_create_response_from_callback(length, 1, read_nothing, NULL, NULL);
}

/* Ends the connection before the announced length is reached, so that the client notices. */
static ssize_t cut(struct request *request)
{
    const struct zt_error *error = readahead_error(request_state_const(request)->ahead);

    if (error != NULL)
        log_write(LOG_LEVEL_ERROR, "request %s: its response is cut off: %s", request->id,
                  error->message);
    mhd_end_now(request->connection);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t read_ahead(void *context, uint64_t position, char *buffer, size_t size)
{
    struct request *request = context;
    const ssize_t taken = readahead_take(request_state(request)->ahead, position, buffer, size);

    assert(request_state_const(request)->sending == SENDING_AHEAD);
    request->connection->mhd->progressed = true;
    if (taken == 0)
        mhd_suspend(request->connection, CONNECTION_WAITING);
    return taken >= 0 ? taken : cut(request);
}

/* Called when the head is sent and again when the body is sent. It never returns a byte: an error
 * is the only end that the library then accepts. */
static ssize_t read_bulk(void *context, uint64_t position, char *buffer, size_t size)
{
    struct request *request = context;

    assert(request_state_const(request)->sending == SENDING_BULK);
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
    const struct answer *answer = &state->answer;

    switch (state->sending) {
    case SENDING_BUFFER:
    case SENDING_MAPPED:
        break;
    case SENDING_BULK:
        return MHD_create_response_from_callback(answer->content_length, 1, read_bulk, request,
                                                 NULL);
    case SENDING_AHEAD:
        return MHD_create_response_from_callback(
            answer->content_length, readahead_block(state->ahead), read_ahead, request, NULL);
    }
    assert(answer->segment_count == 1);
    return buffer_response(segment_bytes(&answer->segments[0]), answer->content_length);
}

/* Returns the length of the library's additions to the fields: status line, Date, Content-Length,
 * and the empty line. */
static uint64_t frame_bytes(const struct answer *answer)
{
    static const char frame[] =
        "HTTP/1.1 200 \r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n";
    uint64_t bytes = sizeof(frame) - 1 + strlen(MHD_get_reason_phrase_for(answer->status));

    for (uint64_t left = answer->content_length; left > 9; left /= 10)
        bytes++;
    return bytes;
}

/* Adds the answer's fields, and their length to *bytes. */
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
    if (answer->content_length > SENDER_SMALL_BYTES && request->connection->tls != NULL)
        connection_begin_large(request->connection);
    if (answer->content_length <= SENDER_SMALL_BYTES)
        bulk_make_way(request->connection->mhd->bulks, request->connection->mhd->now_ms);
    state->closes = close;
    state->head_bytes = frame_bytes(answer);
    if (!add_fields(response, answer, close || answer->close, &state->head_bytes)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}
