/* A request's memory, held objects, header fields and query, and how it is woken. */
#include "http/exchange/request.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/fields/uri.h"

/* A separate piece of a request's memory, in a linked list. */
struct scratch {
    struct scratch *next;
    max_align_t bytes[];
};

static const char *const method_names[] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",     [METHOD_PUT] = "PUT",
    [METHOD_POST] = "POST",       [METHOD_DELETE] = "DELETE", [METHOD_PATCH] = "PATCH",
    [METHOD_OPTIONS] = "OPTIONS", [METHOD_TRACE] = "TRACE",   [METHOD_CONNECT] = "CONNECT",
    [METHOD_QUERY] = "QUERY",
};

enum method method_parse(const char *text)
{
    for (unsigned i = 0; i < METHOD_UNKNOWN; i++)
        if (strcmp(text, method_names[i]) == 0)
            return (enum method)i;
    return METHOD_UNKNOWN;
}

const char *method_name(enum method method)
{
    return method < METHOD_UNKNOWN ? method_names[method] : "OTHER";
}

static void on_woken(struct job *job)
{
    struct request_state *state =
        (struct request_state *)((char *)job - offsetof(struct request_state, wake));

    if (state->transport != NULL)
        state->transport->resume(&state->request);
}

bool request_is_abandoned(const struct request *request)
{
    const struct transport *transport = request_state_const(request)->transport;

    return transport != NULL && request_is_read(request) && transport->is_gone(request->connection);
}

const char *const *request_client_names(const struct request *request)
{
    const struct transport *transport = request_state_const(request)->transport;

    return transport != NULL && transport->client_names != NULL
               ? transport->client_names(request->connection)
               : NULL;
}

static bool waiter_is_gone(const struct waiter *waiter)
{
    const struct request_state *state =
        (const struct request_state *)(const void *)((const char *)waiter -
                                                     offsetof(struct request_state, waiter));

    return request_is_abandoned(&state->request);
}

static void wake_by_waiter(struct waiter *waiter)
{
    request_wake((struct request *)((char *)waiter - offsetof(struct request_state, waiter)));
}

/* Requests from a pool have room for a target up to this length. */
#define POOL_TARGET_MAX 511
/* As many requests as a busy loop handles in one turn. */
#define POOL_MAX 256

static void begin(struct request_state *state, struct server *server, struct mailbox *mailbox,
                  const char *target, size_t length)
{
    memset(state, 0, offsetof(struct request_state, load_error));
    state->request.server = server;
    state->request.mailbox = mailbox;
    state->request.access = &access_unrestricted;
    state->client_key = 1;
    state->wake.done = on_woken;
    state->waiter.wake = wake_by_waiter;
    state->waiter.is_gone = waiter_is_gone;
    state->target_length = length;
    memcpy(state->target, target, length + 1);
    state->query_text = query_begin(state->target);
    representation_init(&state->request.reply);
}

struct request *request_new(struct server *server, struct mailbox *mailbox, const char *target)
{
    const size_t length = strlen(target);
    struct request_state *state = malloc(sizeof(*state) + length + 1);

    if (state == NULL)
        return NULL;
    state->pool = NULL;
    begin(state, server, mailbox, target, length);
    return &state->request;
}

struct request *request_take(struct request_pool *pool, struct server *server,
                             struct mailbox *mailbox, const char *target)
{
    const size_t length = strlen(target);
    struct request_state *state = pool->spare;

    if (length > POOL_TARGET_MAX)
        return request_new(server, mailbox, target);
    assert((state == NULL) == (pool->count == 0));
    if (state != NULL) {
        pool->spare = state->next_free;
        pool->count--;
    } else {
        state = malloc(sizeof(*state) + POOL_TARGET_MAX + 1);
        if (state == NULL)
            return NULL;
        state->pool = pool;
    }
    begin(state, server, mailbox, target, length);
    return &state->request;
}

void request_pool_clear(struct request_pool *pool)
{
    while (pool->spare != NULL) {
        struct request_state *next = pool->spare->next_free;

        free(pool->spare);
        pool->spare = next;
    }
    pool->count = 0;
}

void request_free(struct request *request)
{
    struct request_state *state = request_state(request);

    if (request == NULL)
        return;
    while (state->hold_count > 0) {
        const struct held *held = &state->holds[--state->hold_count];

        held->release(held->thing);
    }
    while (state->scratch != NULL) {
        struct scratch *next = state->scratch->next;

        free(state->scratch);
        state->scratch = next;
    }
    if (state->pool == NULL || state->pool->count == POOL_MAX) {
        free(state);
        return;
    }
    state->next_free = state->pool->spare;
    state->pool->spare = state;
    state->pool->count++;
}

const char *request_target(const struct request *request)
{
    return request_state_const(request)->target;
}

uint64_t request_body_length(const struct request *request)
{
    return request_state_const(request)->body_length;
}

uint64_t request_client_key(const struct request *request)
{
    return request_state_const(request)->client_key;
}

bool request_add_header(struct request *request, struct header_field field)
{
    struct request_state *state = request_state(request);

    assert(state->header_count <= REQUEST_FIELDS_MAX);
    state->headers_cut = state->header_count == REQUEST_FIELDS_MAX;
    if (state->headers_cut)
        return false;
    state->headers[state->header_count++] = field;
    return true;
}

static const struct header_field *next_header(const struct request_state *state, const char *name,
                                              unsigned *at)
{
    const size_t length = strlen(name);

    for (; *at < state->header_count; ++*at) {
        const struct header_field *field = &state->headers[*at];

        if (field->name_length == length && strncasecmp(field->name, name, length) == 0)
            return &state->headers[(*at)++];
    }
    return NULL;
}

const char *request_header(struct request *request, const char *name)
{
    const struct request_state *state = request_state(request);
    unsigned at = 0;
    const struct header_field *field = next_header(state, name, &at);
    const char *joined = field != NULL ? field->value : NULL;

    while (joined != NULL && (field = next_header(state, name, &at)) != NULL)
        joined = request_print(request, "%s, %s", joined, field->value);
    return joined;
}

bool request_header_at(const struct request *request, unsigned index,
                       struct header_field *out_field)
{
    const struct request_state *state = request_state_const(request);

    if (index >= state->header_count)
        return false;
    *out_field = state->headers[index];
    return true;
}

/* Finds the nth value of a name. Handlers ask for the values of a name in order, so the search
 * continues after the last match: a thousand values cost as much as reading the query once. */
static bool find_value(struct request_state *state, const char *name, unsigned nth,
                       struct zt_text *out_raw)
{
    struct query_cursor *cursor = &state->query;

    if (cursor->name == NULL || strcmp(cursor->name, name) != 0 || cursor->nth > nth)
        *cursor = (struct query_cursor){name, 0, state->query_text};
    while (query_next(&cursor->position, name, out_raw))
        if (cursor->nth++ == nth)
            return true;
    cursor->name = NULL;
    return false;
}

bool request_query(struct request *request, const char *name, unsigned nth,
                   struct zt_text *out_value)
{
    struct request_state *state = request_state(request);
    struct zt_text raw;
    char *text;
    size_t length;

    if (state->query_text == NULL || !find_value(state, name, nth, &raw))
        return false;
    text = request_allocate(request, raw.length + 1);
    if (text == NULL || !percent_decode(raw, text, &length)) {
        state->malformed_parameter = name;
        return false;
    }
    *out_value = (struct zt_text){text, length};
    return true;
}

void *request_allocate(struct request *request, size_t length)
{
    struct request_state *state = request_state(request);
    const size_t rounded = (length + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    struct scratch *piece;

    if (rounded >= length && rounded <= sizeof(state->inline_scratch) - state->inline_used) {
        void *memory = (char *)state->inline_scratch + state->inline_used;

        state->inline_used += rounded;
        return memory;
    }
    if (length > SIZE_MAX - sizeof(*piece))
        return NULL;
    piece = malloc(sizeof(*piece) + length);
    if (piece == NULL)
        return NULL;
    piece->next = state->scratch;
    state->scratch = piece;
    return piece->bytes;
}

void *request_new_memory(struct request *request, size_t size)
{
    void *memory = request_allocate(request, size);

    assert(size > 0);
    if (memory != NULL)
        return memset(memory, 0, size);
    problem_reply_no_memory(request);
    return NULL;
}

char *request_copy(struct request *request, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? request_allocate(request, length + 1) : NULL;

    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* Most texts are short and are written directly into the request's memory in one pass. */
__attribute__((format(printf, 2, 0))) static char *print_inline(struct request_state *state,
                                                                const char *format,
                                                                va_list arguments,
                                                                size_t *out_length)
{
    char *text = (char *)state->inline_scratch + state->inline_used;
    const size_t room = sizeof(state->inline_scratch) - state->inline_used;
    const int length = vsnprintf(text, room, format, arguments);

    if (length < 0)
        return NULL;
    *out_length = (size_t)length;
    return *out_length < room ? request_allocate(&state->request, *out_length + 1) : NULL;
}

char *request_print(struct request *request, const char *format, ...)
{
    size_t length = SIZE_MAX;
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = print_inline(request_state(request), format, arguments, &length);
    va_end(arguments);
    if (text != NULL || length == SIZE_MAX)
        return text;
    text = request_allocate(request, length + 1);
    if (text == NULL)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, length + 1, format, arguments);
    va_end(arguments);
    return text;
}

void request_hold(struct request *request, void *thing, void (*release)(void *thing))
{
    struct request_state *state = request_state(request);

    assert(state->hold_count < REQUEST_HOLDS);
    assert(release != NULL);
    state->holds[state->hold_count++] = (struct held){thing, release};
}

void request_wake(struct request *request)
{
    struct request_state *state = request_state(request);

    if (request->mailbox != NULL)
        mailbox_put(request->mailbox, &state->wake.mail);
    else
        atomic_store(&state->woken, true);
}

struct waiter *request_waiter(struct request *request)
{
    struct waiter *waiter = &request_state(request)->waiter;

    waiter->client = request_client_key(request);
    return waiter;
}

static void run_work(struct job *job)
{
    struct request_state *state =
        (struct request_state *)((char *)job - offsetof(struct request_state, work));

    if (!request_is_abandoned(&state->request))
        state->work_run(&state->request);
    request_wake(&state->request);
}

static struct job *make_work(struct request *request, void (*work)(struct request *request))
{
    struct request_state *state = request_state(request);

    assert(work != NULL);
    state->work_run = work;
    state->work = (struct job){.run = run_work, .client = request_client_key(request)};
    return &state->work;
}

enum outcome request_work(struct request *request, void (*work)(struct request *request))
{
    workers_submit(server_waiters(request->server), make_work(request, work));
    return OUTCOME_WAITING;
}

enum outcome request_work_here(struct request *request, void (*work)(struct request *request))
{
    workers_submit(request->server->workers, make_work(request, work));
    return OUTCOME_WAITING;
}

enum outcome request_work_long(struct request *request, void (*work)(struct request *request))
{
    workers_submit_long(server_waiters(request->server), make_work(request, work));
    return OUTCOME_WAITING;
}

void reply_json(struct request *request, unsigned status, const char *text, size_t length)
{
    char *copy = request_allocate(request, length);

    representation_init(&request->reply);
    request->replied = true;
    if (copy == NULL) {
        request->reply.status = 500;
        return;
    }
    memcpy(copy, text, length);
    request->reply.status = status;
    request->reply.media_type = "application/json";
    representation_memory(&request->reply, copy, length);
}

void reply_empty(struct request *request, unsigned status)
{
    representation_init(&request->reply);
    request->reply.status = status;
    request->replied = true;
}
