/* Whole requests without a connection, through the server's own table of routes, to the handlers of
 * uploads over a world's folder: method, target, fields and a body in pieces go in; status, fields,
 * problem code and body come out. */
#ifndef UPLOAD_REQUEST_H
#define UPLOAD_REQUEST_H

#include "upload_world.h"

#include <dirent.h>

#include "http/exchange/client.h"
#include "http/exchange/exchange.h"
#include "http/exchange/request_state.h"

#define ASKED_FIELDS  8
#define ANSWER_TEXT   8192
#define MODEL_MAX     4096
#define PIECE_DEFAULT 1000
#define UPLOAD_FOLDER ".ztserve-uploads"

/* What a client sends. A body goes out in pieces of piece_bytes (0: PIECE_DEFAULT). */
struct asked {
    const char *method;
    const char *target;
    const char *fields[2 * ASKED_FIELDS + 1]; /* name, value, ...; NULL after the last */
    const void *body;                         /* NULL: none, and no Content-Length */
    size_t length;
    size_t piece_bytes;
    uint64_t declared;       /* Content-Length, where it is not length; the body may be NULL then */
    bool chunked;            /* instead of a Content-Length */
    const struct peer *peer; /* which client is counted; NULL: none */
    const struct access *access; /* NULL: unrestricted */
    bool on_workers; /* pieces after the first are received as those of long bodies are */
};

static inline struct asked to_ask(const char *method, const char *target)
{
    return (struct asked){.method = method, .target = target};
}

static inline struct asked with_field(struct asked asked, const char *name, const char *value)
{
    size_t at = 0;

    while (asked.fields[at] != NULL)
        at += 2;
    assert_true(at < 2 * (size_t)ASKED_FIELDS);
    asked.fields[at] = name;
    asked.fields[at + 1] = value;
    return asked;
}

static inline struct asked with_body(struct asked asked, const void *body, size_t length)
{
    asked.body = body;
    asked.length = length;
    return asked;
}

struct answered {
    const char *target;
    unsigned status;
    bool is_early;     /* replied before the body */
    char code[48];     /* of the problem; "" if it is none */
    char fields[2048]; /* "\nName: value" each */
    char body[ANSWER_TEXT];
};

/* A request that is sent step by step. */
struct sending_request {
    struct request *request;
    struct asked asked;
    char length_text[24];
    size_t sent;
    bool is_early;
};

static inline void sending_add(struct sending_request *sending, const char *name, const char *value)
{
    const struct header_field field = {name, value, (uint32_t)strlen(name),
                                       (uint32_t)strlen(value)};

    assert_true(request_add_header(sending->request, field));
}

/* Sends the header. The structure must stay where it is until sending_end or sending_cut. */
static inline void sending_begin(struct world *world, struct sending_request *sending,
                                 struct asked asked)
{
    const uint64_t declared = asked.declared != 0 ? asked.declared : asked.length;

    *sending = (struct sending_request){.asked = asked};
    sending->request = request_new(&world->server, NULL, asked.target);
    assert_non_null(sending->request);
    sending->request->method = method_parse(asked.method);
    request_state(sending->request)->peer = asked.peer;
    if (asked.access != NULL)
        sending->request->access = asked.access;
    sending_add(sending, "Host", "x");
    for (size_t i = 0; asked.fields[i] != NULL; i += 2)
        sending_add(sending, asked.fields[i], asked.fields[i + 1]);
    if (asked.chunked) {
        sending_add(sending, "Transfer-Encoding", "chunked");
    } else if (asked.body != NULL || asked.declared != 0) {
        snprintf(sending->length_text, sizeof(sending->length_text), "%llu",
                 (unsigned long long)declared);
        sending_add(sending, "Content-Length", sending->length_text);
    }
    if (sending->request->access->proxies.count > 0)
        request_find_forwarded(sending->request);
    sending->is_early = exchange_begin(sending->request);
}

static inline void sending_piece(struct sending_request *sending, size_t length)
{
    struct request *request = sending->request;
    const struct body_piece piece = {(const char *)sending->asked.body + sending->sent, length,
                                     sending->sent, false, NULL};

    if (sending->asked.on_workers && sending->sent > 0)
        request->receiver->receive(request, &piece);
    else
        assert_true(exchange_receive(request, piece.bytes, length));
    sending->sent += length;
}

/* Sends the body up to a position. */
static inline void sending_until(struct sending_request *sending, size_t end)
{
    const size_t most =
        sending->asked.piece_bytes != 0 ? sending->asked.piece_bytes : PIECE_DEFAULT;

    while (sending->sent < end)
        sending_piece(sending, end - sending->sent < most ? end - sending->sent : most);
}

static inline void await_work(struct request *request)
{
    struct request_state *state = request_state(request);

    AWAIT(atomic_exchange(&state->woken, false));
}

static inline void read_body(const struct answer *answer, struct answered *out_answered)
{
    size_t at = 0;

    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        assert_int_equal(segment->kind, SEGMENT_MEMORY);
        assert_true(at + segment->length < sizeof(out_answered->body));
        memcpy(out_answered->body + at, segment->bytes, segment->length);
        at += segment->length;
    }
}

static inline void read_code(struct answered *answered)
{
    const char *code = strstr(answered->body, "\"code\":\"");
    size_t length;

    if (answered->status < 400 || code == NULL)
        return;
    code += strlen("\"code\":\"");
    length = strcspn(code, "\"");
    assert_true(length < sizeof(answered->code));
    memcpy(answered->code, code, length);
}

/* The answer as far as it has been decided. Ends the request. */
static inline struct answered sending_answer(struct sending_request *sending)
{
    struct answered answered = {.target = sending->asked.target, .is_early = sending->is_early};
    const struct answer *answer = exchange_answer(sending->request);
    size_t at = 0;

    answered.status = answer->status;
    for (unsigned i = 0; i < answer->field_count; i++)
        at += (size_t)snprintf(answered.fields + at, sizeof(answered.fields) - at, "\n%s: %s",
                               answer->fields[i].name, answer->fields[i].value);
    assert_true(at < sizeof(answered.fields));
    read_body(answer, &answered);
    read_code(&answered);
    request_free(sending->request);
    sending->request = NULL;
    return answered;
}

/* The whole body was sent. */
static inline struct answered sending_end(struct sending_request *sending)
{
    if (!sending->is_early)
        while (exchange_advance(sending->request) == OUTCOME_WAITING)
            await_work(sending->request);
    return sending_answer(sending);
}

/* The connection is gone. */
static inline void sending_cut(struct sending_request *sending)
{
    request_free(sending->request);
    sending->request = NULL;
}

static inline struct answered ask(struct world *world, struct asked asked)
{
    struct sending_request sending;

    sending_begin(world, &sending, asked);
    if (!sending.is_early)
        sending_until(&sending, asked.length);
    return sending_end(&sending);
}

/* The value of a field, up to the end of its line; "" if it is absent. In a buffer of its own until
 * the next call. */
static inline const char *value_of(const struct answered *answered, const char *name)
{
    static char value[512];
    char key[64];
    const char *at;
    size_t length;

    snprintf(key, sizeof(key), "\n%s: ", name);
    at = strstr(answered->fields, key);
    if (at == NULL)
        return "";
    at += strlen(key);
    length = strcspn(at, "\n");
    assert_true(length < sizeof(value));
    memcpy(value, at, length);
    value[length] = '\0';
    return value;
}

static inline void assert_problem(const struct answered *answered, unsigned status,
                                  const char *code)
{
    if (answered->status != status || strcmp(answered->code, code) != 0)
        print_error("%s: %u %s: %s\n", answered->target, answered->status, answered->code,
                    answered->body);
    assert_int_equal(answered->status, status);
    assert_string_equal(answered->code, code);
}

/* Refused before a byte of the body was read. */
static inline void assert_refused(struct world *world, struct asked asked, unsigned status,
                                  const char *code)
{
    const struct answered answered = ask(world, asked);

    assert_problem(&answered, status, code);
    assert_true(answered.is_early);
}

/* Refused once the body was read. */
static inline void assert_fails_after_body(struct world *world, struct asked asked, unsigned status,
                                           const char *code)
{
    const struct answered answered = ask(world, asked);

    assert_problem(&answered, status, code);
    assert_false(answered.is_early);
}

static inline struct answered assert_status(struct world *world, struct asked asked,
                                            unsigned status)
{
    const struct answered answered = ask(world, asked);

    assert_problem(&answered, status, "");
    return answered;
}

static inline void assert_exists(const struct world *world, const char *path, bool exists)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "%s/%s", world->root, path);
    assert_int_equal(access(whole, F_OK) == 0, exists);
}

/* How many entries a folder has, hidden ones too; 0 if there is no such folder. */
static inline unsigned entries_of(const struct world *world, const char *folder)
{
    char whole[256];
    const struct dirent *entry;
    unsigned count = 0;
    DIR *listing;

    snprintf(whole, sizeof(whole), "%s/%s", world->root, folder);
    listing = opendir(whole);
    if (listing == NULL)
        return 0;
    while ((entry = readdir(listing)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(listing);
    return count;
}

/* Nothing of any upload is on the disk; what workers still remove is waited for. */
static inline void assert_nothing_kept(const struct world *world)
{
    AWAIT(entries_of(world, UPLOAD_FOLDER) == 0);
}

/* So many descriptors are open, once workers have let go of what they were hashing. */
static inline void assert_descriptors(unsigned expected)
{
    AWAIT(open_descriptors() == expected);
}

/* Repr-Digest of some bytes. */
static inline const char *digest_of(const void *bytes, size_t length, char out_text[80])
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_ok(zt_hasher_new(ZT_DIGEST_SHA256, &hasher));
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    digest_field_format(digest.bytes, out_text);
    return out_text;
}

#define WRONG_DIGEST "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"

#endif
