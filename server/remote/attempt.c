/* The answer's body goes straight from libcurl's buffer to where the caller wants it. The response
 * is compared with the request by its header before the first byte is used, and by its length after
 * the last. */
#include "remote/attempt.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/answer_head.h"
#include "remote/request.h"

/* Bytes kept from the body of an error response: XML with a code and a message. */
#define EXCUSE_MOST 65536
/* Bytes read, and dropped, from an unwanted body. */
#define UNWANTED_MOST 65536

/* Fewer bytes than this do not count as progress: a store that trickles blocks a request like one
 * that hangs. */
#define MOVED_BYTES 4096

/* Where a body goes. */
enum target { TARGET_INTO, TARGET_TAKEN, TARGET_KEPT, TARGET_EXCUSE, TARGET_DROPPED };

struct attempt {
    CURL *handle;
    struct request_peer peer;
    struct remote_exchange *exchange;
    struct answer_head head;
    struct curl_slist *fields;
    enum target target;
    uint64_t received;
    uint64_t sent;
    uint64_t moved_bytes; /* since moved_ms */
    int64_t moved_ms;
    size_t answer_room; /* of exchange->answer, without the NUL */
    /* Why the transfer was ended from here. */
    bool is_judged;
    struct attempt_outcome verdict;
    bool is_enough;    /* the rest of an excuse is not wanted */
    bool is_forbidden; /* an address was farther inside than allowed */
    char message[CURL_ERROR_SIZE];
};

struct attempt *attempt_new(const struct request_peer *peer)
{
    struct attempt *attempt = calloc(1, sizeof(*attempt));

    if (attempt == NULL)
        return NULL;
    attempt->peer = *peer;
    attempt->handle = curl_easy_init();
    if (attempt->handle == NULL) {
        free(attempt);
        return NULL;
    }
    return attempt;
}

void attempt_free(struct attempt *attempt)
{
    if (attempt == NULL)
        return;
    curl_easy_cleanup(attempt->handle);
    curl_slist_free_all(attempt->fields);
    free(attempt);
}

CURL *attempt_handle(const struct attempt *attempt)
{
    return attempt->handle;
}

void attempt_set_context(struct attempt *attempt, void *context)
{
    curl_easy_setopt(attempt->handle, CURLOPT_PRIVATE, context);
}

/* Ends the transfer; the first reason counts. */
static bool judge(struct attempt *attempt, enum remote_failure failure, bool may_help,
                  const char *message)
{
    if (!attempt->is_judged) {
        attempt->is_judged = true;
        attempt->verdict = (struct attempt_outcome){failure, may_help};
        zt_fail(&attempt->exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%s", message);
    }
    return false;
}

/* --- the answer's header --- */

static bool is_success(const struct attempt *attempt)
{
    const unsigned status = attempt->head.fields.status;

    return status >= 200 && status < 300;
}

static bool is_head_request(const struct remote_exchange *exchange)
{
    return strcmp(exchange->method, "HEAD") == 0;
}

/* Whether an answer of this status to this request has a body at all (RFC 9112 section 6.3). */
static bool has_body(const struct attempt *attempt)
{
    const unsigned status = attempt->head.fields.status;

    return !is_head_request(attempt->exchange) && status != 204 && status != 304;
}

/* A part that was asked for, clipped at the object's end at most. */
static bool check_range(struct attempt *attempt)
{
    const struct remote_exchange *exchange = attempt->exchange;
    const struct remote_head *head = &attempt->head.fields;
    uint64_t last = exchange->range_last;

    if (!exchange->has_range && head->status != 206)
        return true;
    if (!exchange->has_range)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false,
                     "the server sent a part although the whole file was requested");
    if (head->status != 206)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false,
                     "the server sent the whole file although a part was requested");
    if (!head->has_range)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false,
                     "the server sent a part without a valid Content-Range");
    assert(head->range_first <= head->range_last && head->range_last < head->range_size);
    if (last > head->range_size - 1)
        last = head->range_size - 1;
    if (head->range_first != remote_range_first(exchange) || head->range_last != last)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false,
                     "the server sent another part than requested");
    return true;
}

/* UINT64_MAX: unknown. */
static uint64_t expected_length(const struct attempt *attempt)
{
    const struct remote_exchange *exchange = attempt->exchange;
    const struct remote_head *head = &attempt->head.fields;

    if (exchange->into != NULL)
        return exchange->into_length - exchange->begun;
    if (head->status == 206)
        return head->range_last - head->range_first + 1;
    return UINT64_MAX;
}

static bool check_length(struct attempt *attempt)
{
    const struct remote_head *head = &attempt->head.fields;
    const uint64_t expected = expected_length(attempt);
    const uint64_t most = attempt->target == TARGET_KEPT      ? attempt->exchange->body_most
                          : attempt->target == TARGET_DROPPED ? UNWANTED_MOST
                                                              : UINT64_MAX;

    if (attempt->exchange->into != NULL && head->status == 206 &&
        head->range_last - head->range_first + 1 != expected)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false,
                     "the server sent a part of another length");
    if (head->content_length == UINT64_MAX)
        return true;
    if (expected != UINT64_MAX && head->content_length < expected)
        return judge(attempt, REMOTE_FAILURE_BROKEN, true, "the server's response is too short");
    if ((expected != UINT64_MAX && head->content_length > expected) || head->content_length > most)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false, "the server's response is too long");
    return true;
}

static bool accept_head(struct attempt *attempt)
{
    struct remote_exchange *exchange = attempt->exchange;

    exchange->head = attempt->head.fields;
    attempt->target = TARGET_EXCUSE;
    if (!is_success(attempt))
        return true;
    attempt->target = exchange->into != NULL     ? TARGET_INTO
                      : exchange->take != NULL   ? TARGET_TAKEN
                      : exchange->body_most != 0 ? TARGET_KEPT
                                                 : TARGET_DROPPED;
    if (exchange->accept != NULL && !exchange->accept(exchange))
        return judge(attempt, REMOTE_FAILURE_REFUSED, false,
                     "the response is for another resource");
    return is_head_request(exchange) ||
           (check_range(attempt) && (!has_body(attempt) || check_length(attempt)));
}

static void note_moved(struct attempt *attempt, size_t length)
{
    attempt->moved_bytes += length;
    if (attempt->moved_bytes < MOVED_BYTES)
        return;
    attempt->moved_bytes = 0;
    attempt->moved_ms = clock_coarse_ms();
}

/* Forgets the body of an earlier response: of another attempt, or of a 417, after which libcurl
 * itself asks again. */
static void drop_answer(struct attempt *attempt)
{
    attempt->received = 0;
    attempt->answer_room = 0;
    attempt->is_enough = false;
    remote_exchange_free(attempt->exchange);
}

static size_t take_line(char *bytes, size_t size, size_t count, void *context)
{
    struct attempt *attempt = context;
    const struct zt_text line = {bytes, size * count};
    const bool was_whole = attempt->head.is_whole;
    bool proceed =
        answer_head_take(&attempt->head, line) ||
        judge(attempt, REMOTE_FAILURE_BROKEN, true, "the server's response has a malformed header");

    if (was_whole && !attempt->head.is_whole)
        drop_answer(attempt);
    note_moved(attempt, line.length);
    if (proceed && attempt->head.is_whole && !was_whole)
        proceed = accept_head(attempt);
    return proceed ? line.length : 0;
}

/* --- the answer's body --- */

/* Makes room for length more bytes and a NUL. */
static bool grow_answer(struct attempt *attempt, size_t length)
{
    struct remote_exchange *exchange = attempt->exchange;
    size_t room = attempt->answer_room * 2;
    char *answer;

    assert(exchange->answer_length <= attempt->answer_room);
    if (exchange->answer != NULL && length <= attempt->answer_room - exchange->answer_length)
        return true;
    if (room < exchange->answer_length + length)
        room = exchange->answer_length + length;
    answer = realloc(exchange->answer, room + 1);
    if (answer == NULL)
        return judge(attempt, REMOTE_FAILURE_BROKEN, true, "there is no memory for a response");
    exchange->answer = answer;
    attempt->answer_room = room;
    return true;
}

static bool keep(struct attempt *attempt, const char *bytes, size_t length)
{
    struct remote_exchange *exchange = attempt->exchange;

    if (!grow_answer(attempt, length))
        return false;
    memcpy(exchange->answer + exchange->answer_length, bytes, length);
    exchange->answer_length += length;
    assert(exchange->answer_length <= attempt->answer_room);
    exchange->answer[exchange->answer_length] = '\0';
    return true;
}

/* Takes what fits, and then no more: the status has said enough. */
static bool keep_excuse(struct attempt *attempt, const char *bytes, size_t length)
{
    const size_t room = EXCUSE_MOST - attempt->exchange->answer_length;

    attempt->is_enough = length > room;
    return keep(attempt, bytes, length < room ? length : room) && !attempt->is_enough;
}

static bool take_piece(struct attempt *attempt, const char *bytes, size_t length)
{
    const uint64_t expected = expected_length(attempt);

    if (expected != UINT64_MAX && attempt->received > expected)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false, "the server's response is too long");
    return attempt->exchange->take(attempt->exchange, bytes, length) ||
           judge(attempt, REMOTE_FAILURE_REFUSED, false, "the rest of the response is not needed");
}

/* The last byte is not reported, so that a try after a broken one always has something to ask
 * for. */
static void take_into(struct remote_exchange *exchange, uint64_t received, const char *bytes,
                      size_t length)
{
    size_t arrived = exchange->begun + (size_t)received + length;

    assert(arrived <= exchange->into_length);
    memcpy(exchange->into + exchange->begun + received, bytes, length);
    if (arrived == exchange->into_length)
        arrived--;
    if (exchange->progressed == NULL || arrived <= exchange->arrived)
        return;
    exchange->arrived = arrived;
    exchange->progressed(exchange, arrived);
}

static bool take(struct attempt *attempt, const char *bytes, size_t length)
{
    struct remote_exchange *exchange = attempt->exchange;
    const uint64_t received = attempt->received;
    bool fits;

    attempt->received += length;
    if (attempt->target == TARGET_EXCUSE)
        return keep_excuse(attempt, bytes, length);
    if (attempt->target == TARGET_TAKEN)
        return take_piece(attempt, bytes, length);
    if (attempt->target == TARGET_INTO)
        fits = length <= exchange->into_length - exchange->begun - received;
    else if (attempt->target == TARGET_KEPT)
        fits = length <= exchange->body_most - received;
    else
        fits = length <= UNWANTED_MOST - received;
    if (!fits)
        return judge(attempt, REMOTE_FAILURE_BROKEN, false, "the server's response is too long");
    if (attempt->target == TARGET_INTO)
        take_into(exchange, received, bytes, length);
    return attempt->target != TARGET_KEPT || keep(attempt, bytes, length);
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    const size_t length = size * count;
    struct attempt *attempt = context;

    note_moved(attempt, length);
    if (!attempt->head.is_whole)
        return judge(attempt, REMOTE_FAILURE_BROKEN, true,
                     "the server's response has a malformed header"),
               0;
    return take(attempt, bytes, length) ? length : 0;
}

/* --- the request's body --- */

static size_t give_body(char *buffer, size_t size, size_t count, void *context)
{
    struct attempt *attempt = context;
    const struct remote_exchange *exchange = attempt->exchange;
    const uint64_t left = exchange->body_length - attempt->sent;
    size_t length = size * count < left ? size * count : (size_t)left;
    ssize_t got = (ssize_t)length;

    assert(attempt->sent <= exchange->body_length);
    if (length == 0)
        return 0;
    if (exchange->body == REMOTE_BODY_MEMORY)
        memcpy(buffer, (const char *)exchange->body_bytes + attempt->sent, length);
    else
        do
            got = pread(exchange->body_descriptor, buffer, length,
                        (off_t)(exchange->body_offset + attempt->sent));
        while (got < 0 && errno == EINTR);
    if (got <= 0) {
        judge(attempt, REMOTE_FAILURE_BROKEN, false, "the file to be sent cannot be read");
        return CURL_READFUNC_ABORT;
    }
    attempt->sent += (uint64_t)got;
    note_moved(attempt, (size_t)got);
    if (exchange->gave != NULL)
        exchange->gave(attempt->exchange, (size_t)got);
    return (size_t)got;
}

/* A kept connection turned out to be closed: libcurl begins again on another. */
static int seek_body(void *context, curl_off_t offset, int origin)
{
    struct attempt *attempt = context;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > attempt->exchange->body_length)
        return CURL_SEEKFUNC_FAIL;
    attempt->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* --- the address --- */

/* Sees each address before it is connected to, once the name has been looked up. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct attempt *attempt = context;
    const struct remote_exchange *exchange = attempt->exchange;

    (void)purpose;
    if (exchange->reach_most != REACH_ANY &&
        !request_uses_proxy(&attempt->peer, exchange->origin) &&
        reach_of_address(&address->addr) > exchange->reach_most) {
        attempt->is_forbidden = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Of the connection that was used, perhaps one of an earlier exchange. */
static enum reach find_reach(const struct attempt *attempt)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } peer;
    const char *text = NULL;

    memset(&peer, 0, sizeof(peer));
    if (attempt->peer.system_proxy || request_uses_proxy(&attempt->peer, attempt->exchange->origin))
        return REACH_ANY;
    curl_easy_getinfo(attempt->handle, CURLINFO_PRIMARY_IP, &text);
    if (text == NULL)
        return REACH_ANY;
    peer.any.sa_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    if (inet_pton(peer.any.sa_family, text,
                  peer.any.sa_family == AF_INET ? (void *)&peer.v4.sin_addr
                                                : (void *)&peer.v6.sin6_addr) != 1)
        return REACH_ANY;
    return reach_of_address(&peer.any);
}

/* --- beginning and end --- */

static void set_callbacks(struct attempt *attempt)
{
    CURL *handle = attempt->handle;

    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_line);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, attempt);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, attempt);
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(handle, CURLOPT_READDATA, attempt);
    curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek_body);
    curl_easy_setopt(handle, CURLOPT_SEEKDATA, attempt);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, attempt->message);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, attempt);
}

int64_t attempt_moved_ms(const struct attempt *attempt)
{
    return attempt->moved_ms;
}

bool attempt_begin(struct attempt *attempt, struct remote_exchange *exchange, uint64_t limit_ms,
                   const struct signed_fields *fields, struct attempt_outcome *out_outcome)
{
    assert(attempt->exchange == NULL);
    attempt->exchange = exchange;
    answer_head_clear(&attempt->head);
    drop_answer(attempt);
    attempt->sent = 0;
    attempt->moved_bytes = 0;
    attempt->moved_ms = clock_coarse_ms();
    attempt->is_judged = false;
    attempt->is_forbidden = false;
    attempt->message[0] = '\0';
    exchange->head = attempt->head.fields;
    if (!request_prepare(attempt->handle, &attempt->peer, exchange, fields, limit_ms,
                         &attempt->fields)) {
        judge(attempt, REMOTE_FAILURE_BROKEN, false, "the request cannot be sent");
        *out_outcome = attempt_end(attempt, CURLE_OK);
        return false;
    }
    set_callbacks(attempt);
    return true;
}

/* --- ending --- */

static struct attempt_outcome judge_whole(struct attempt *attempt)
{
    const struct remote_head *head = &attempt->head.fields;
    const uint64_t expected = expected_length(attempt);
    const struct attempt_outcome success = {REMOTE_FAILURE_NONE, false};

    if (!attempt->head.is_whole)
        judge(attempt, REMOTE_FAILURE_BROKEN, true, "the server gave no response");
    else if (has_body(attempt) &&
             ((head->content_length != UINT64_MAX && attempt->received < head->content_length) ||
              (is_success(attempt) && expected != UINT64_MAX && attempt->received < expected)))
        judge(attempt, REMOTE_FAILURE_BROKEN, true, "the server's response is too short");
    else if (is_success(attempt) && attempt->exchange->into != NULL &&
             attempt->received != expected)
        judge(attempt, REMOTE_FAILURE_BROKEN, true, "the server's response is too short");
    else
        zt_error_clear(&attempt->exchange->error);
    return attempt->is_judged ? attempt->verdict : success;
}

/* Whether a connection was made or reused. */
static bool was_connected(const struct attempt *attempt)
{
    curl_off_t ready_us = 0;

    curl_easy_getinfo(attempt->handle, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
    return ready_us > 0;
}

/* Whether it is the proxy that could not be connected to, or that refuses to connect further. */
static bool failed_at_proxy(const struct attempt *attempt, CURLcode code)
{
    long connect_status = 0;

    if (!request_uses_proxy(&attempt->peer, attempt->exchange->origin))
        return false;
    curl_easy_getinfo(attempt->handle, CURLINFO_HTTP_CONNECTCODE, &connect_status);
    return code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_PROXY || (code == CURLE_OPERATION_TIMEDOUT && !was_connected(attempt)) ||
           (connect_status != 0 && connect_status / 100 != 2);
}

static struct attempt_outcome outcome_of(const struct attempt *attempt, CURLcode code)
{
    const bool was_reached = was_connected(attempt);

    if (failed_at_proxy(attempt, code))
        return (struct attempt_outcome){REMOTE_FAILURE_PROXY, true};
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return (struct attempt_outcome){REMOTE_FAILURE_CONNECT, true};
    case CURLE_OPERATION_TIMEDOUT:
        return (struct attempt_outcome){
            was_reached ? REMOTE_FAILURE_TIMEOUT : REMOTE_FAILURE_CONNECT, true};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return (struct attempt_outcome){REMOTE_FAILURE_CERTIFICATE, false};
    /* A connection that broke in the handshake may do better the next time. */
    case CURLE_SSL_CONNECT_ERROR:
        return (struct attempt_outcome){REMOTE_FAILURE_TLS, true};
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_USE_SSL_FAILED:
        return (struct attempt_outcome){REMOTE_FAILURE_TLS, false};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return (struct attempt_outcome){REMOTE_FAILURE_BROKEN, was_reached};
    default:
        return (struct attempt_outcome){REMOTE_FAILURE_BROKEN, true};
    }
}

struct attempt_outcome attempt_end(struct attempt *attempt, CURLcode code)
{
    struct attempt_outcome outcome;

    assert(attempt->exchange != NULL);
    attempt->exchange->reached = find_reach(attempt);
    if (code != CURLE_OK && attempt->is_forbidden)
        judge(attempt, REMOTE_FAILURE_REFUSED, false,
              "the address is inside a network, where it must not lead");
    if (code == CURLE_WRITE_ERROR && attempt->is_enough)
        code = CURLE_OK;
    if (attempt->is_judged)
        outcome = attempt->verdict;
    else if (code == CURLE_OK && attempt->is_enough)
        outcome = (struct attempt_outcome){REMOTE_FAILURE_NONE, false};
    else if (code == CURLE_OK)
        outcome = judge_whole(attempt);
    else {
        outcome = outcome_of(attempt, code);
        zt_fail(&attempt->exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%s%s",
                outcome.failure == REMOTE_FAILURE_PROXY ? "the proxy cannot be used: " : "",
                attempt->message[0] != '\0' ? attempt->message : curl_easy_strerror(code));
    }
    curl_slist_free_all(attempt->fields);
    attempt->fields = NULL;
    attempt->exchange = NULL;
    return outcome;
}
