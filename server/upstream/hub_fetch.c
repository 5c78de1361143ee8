/* Ranges of a Hub's files, without a thread that waits: the request to the upstream, the redirects,
 * and the bytes, all on the remote's thread.
 *
 *     address kept ──► bytes ──► done
 *          │ it no longer works
 *          ▼
 *     the upstream ──► redirect ──► … ──► bytes ──► done
 *
 * While one fetch asks the upstream where a file is, others for the same file wait for its
 * answer. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/hub.h"
#include "upstream/judge.h"
#include "upstream/kept_addresses.h"
#include "upstream/state.h"

#define MIB ((uint64_t)1 << 20)

enum verdict { VERDICT_NONE, VERDICT_OTHER_FILE, VERDICT_SENSELESS };

struct file_fetch {
    struct upstream_request request; /* first */
    struct cache_fetch *fetch;
    struct upstream_place place; /* with copies of the texts */
    uint64_t arrived;            /* bytes fetched by earlier exchanges */
    enum verdict verdict;        /* of a header with a 2xx */
    bool is_kept;                /* the address is one that was kept */
    bool has_begun_again;
    /* Under the upstream's lock. */
    bool is_asking;            /* in upstream->asking */
    struct file_fetch *next;   /* in upstream->asking, or in joined of another one */
    struct file_fetch *joined; /* these wait for the answer to this one */
    char texts[];
};

/* --- asking once --- */

static bool is_same_place(const struct upstream_place *a, const struct upstream_place *b)
{
    return strcmp(a->path, b->path) == 0 && strcmp(a->commit, b->commit) == 0 &&
           strcmp(a->repository, b->repository) == 0;
}

/* Returns false if another fetch is asking for the file: it will continue or end this one. */
static bool begin_asking(struct file_fetch *file)
{
    struct upstream *upstream = file->request.upstream;
    struct file_fetch *other;

    pthread_mutex_lock(&upstream->lock);
    other = upstream->asking;
    while (other != NULL && !is_same_place(&other->place, &file->place))
        other = other->next;
    assert(other != file && !file->is_asking && file->joined == NULL);
    file->next = other != NULL ? other->joined : upstream->asking;
    if (other != NULL)
        other->joined = file;
    else
        upstream->asking = file;
    file->is_asking = other == NULL;
    pthread_mutex_unlock(&upstream->lock);
    return other == NULL;
}

/* Returns the fetches that wait for this one's answer. */
static struct file_fetch *end_asking(struct file_fetch *file)
{
    struct upstream *upstream = file->request.upstream;
    struct file_fetch **link = &upstream->asking;
    struct file_fetch *joined;

    pthread_mutex_lock(&upstream->lock);
    while (file->is_asking && *link != file)
        link = &(*link)->next;
    if (file->is_asking)
        *link = file->next;
    file->is_asking = false;
    joined = file->joined;
    file->joined = NULL;
    pthread_mutex_unlock(&upstream->lock);
    return joined;
}

/* --- the end --- */

static void finish_one(struct file_fetch *file, enum zt_status status, const struct zt_error *error)
{
    struct upstream *upstream = file->request.upstream;
    struct cache_fetch *fetch = file->fetch;

    assert(!file->is_asking && file->joined == NULL);
    upstream_request_end(&file->request);
    upstream_end_fetch(upstream, file->place.repository, fetch, status, error);
    free(file);
}

/* Those that wait for the answer end with it. */
static void fail(struct file_fetch *file, const struct zt_error *error)
{
    const enum zt_status status = error->status;
    struct file_fetch *joined = end_asking(file);

    assert(status != ZT_OK);
    finish_one(file, status, error);
    while (joined != NULL) {
        struct file_fetch *next = joined->next;

        finish_one(joined, status, error);
        joined = next;
    }
}

static void finish_stale(struct file_fetch *file)
{
    struct zt_error error;

    kept_addresses_forget(file->request.upstream->kept, &file->place, &file->request.address);
    zt_fail(&error, ZT_STALE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
            "the upstream has another file there than the commit had");
    fail(file, &error);
}

/* --- headers and progress, on the remote's thread --- */

/* Returns true if the answer has exactly the requested range. */
static bool is_range(const struct file_fetch *file, const struct remote_head *head)
{
    const struct remote_exchange *exchange = &file->request.exchange;
    const uint64_t first = file->fetch->offset + file->arrived + exchange->begun;
    const uint64_t length = file->fetch->offset + file->fetch->length - first;

    if (head->is_compressed ||
        (head->content_length != UINT64_MAX && head->content_length != length))
        return false;
    if (exchange->has_range)
        return head->status == 206 && head->has_range && head->range_first == first &&
               head->range_last == first + length - 1;
    return head->status == 200;
}

static void share_address(struct file_fetch *file);

static bool accept_answer(struct remote_exchange *exchange)
{
    struct file_fetch *file = (struct file_fetch *)exchange;

    file->verdict = VERDICT_NONE;
    if (!judge_is_same_file(&file->place, &exchange->head, file->request.is_own))
        file->verdict = VERDICT_OTHER_FILE;
    else if (!is_range(file, &exchange->head))
        file->verdict = VERDICT_SENSELESS;
    if (file->verdict == VERDICT_NONE && exchange->has_range)
        share_address(file);
    return file->verdict == VERDICT_NONE;
}

static void on_progress(struct remote_exchange *exchange, size_t arrived)
{
    struct file_fetch *file = (struct file_fetch *)exchange;

    assert(file->arrived + arrived < file->fetch->length);
    if (file->fetch->arrived != NULL)
        file->fetch->arrived(file->fetch, file->arrived + arrived);
}

/* --- sending --- */

static void on_done(struct remote_exchange *exchange);

/* Sends the request of file->request.address for what has not arrived yet. */
static void send_request(struct file_fetch *file)
{
    const struct cache_fetch *fetch = file->fetch;
    struct remote_exchange *exchange = &file->request.exchange;

    assert(file->arrived < fetch->length);
    upstream_request_prepare(&file->request);
    exchange->into = fetch->bytes + file->arrived;
    exchange->into_length = (size_t)(fetch->length - file->arrived);
    /* Small files come whole also from servers without ranges. */
    exchange->has_range =
        fetch->length != file->place.size_bytes || fetch->length > MIB || file->arrived > 0;
    exchange->range_first = fetch->offset + file->arrived;
    exchange->range_last = fetch->offset + fetch->length - 1;
    exchange->progressed = exchange->has_range ? on_progress : NULL;
    exchange->is_urgent = fetch->is_urgent;
    exchange->accept = accept_answer;
    exchange->done = on_done;
    file->verdict = VERDICT_NONE;
    upstream_limit_fetch(file->request.upstream, fetch, file->request.is_own, exchange);
    remote_begin(file->request.upstream->remote, exchange);
}

/* Uses the kept address. */
static void use_address(struct file_fetch *file)
{
    struct upstream *upstream = file->request.upstream;
    const bool is_own = address_is_same_origin(&file->request.address, &upstream->base);
    struct zt_error error;

    file->is_kept = true;
    file->request.hops = 0;
    if ((is_own || atomic_load(&upstream->is_offline) || atomic_load(&upstream->is_stopped)) &&
        upstream_may_ask(upstream, &error) != ZT_OK)
        fail(file, &error);
    else
        send_request(file);
}

/* Keeps the address at which the bytes are, and lets the fetches that wait for it continue. */
static void share_address(struct file_fetch *file)
{
    struct upstream *upstream = file->request.upstream;
    struct file_fetch *joined;

    if (!file->is_asking)
        return;
    kept_addresses_keep(upstream->kept, &file->place, &file->request.address);
    joined = end_asking(file);
    while (joined != NULL) {
        struct file_fetch *next = joined->next;

        joined->request.address = file->request.address;
        use_address(joined);
        joined = next;
    }
}

/* Asks the upstream itself. */
static void ask_upstream(struct file_fetch *file)
{
    struct upstream_request *request = &file->request;
    struct target_writer writer;
    struct zt_error error;
    enum zt_status status;

    if (!begin_asking(file))
        return;
    status = upstream_may_ask(request->upstream, &error);

    target_begin(&writer, request);
    target_plain(&writer, "/");
    target_encoded(&writer, zt_text_from(file->place.repository), true);
    target_plain(&writer, "/resolve/");
    target_encoded(&writer, zt_text_from(file->place.commit), false);
    target_plain(&writer, "/");
    target_encoded(&writer, zt_text_from(file->place.path), true);
    if (status == ZT_OK && writer.is_too_long)
        status = zt_fail(&error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                         "the path of the file is too long to be asked for");
    request->hops = 0;
    file->is_kept = false;
    if (status == ZT_OK)
        send_request(file);
    else
        fail(file, &error);
}

/* Uses the address that is kept by now, or asks for it. */
static void begin(struct file_fetch *file)
{
    if (kept_addresses_find(file->request.upstream->kept, &file->place, &file->request.address))
        use_address(file);
    else
        ask_upstream(file);
}

/* Forgets a kept address that does not work any more, and begins again. Returns false if no address
 * is left to try. */
static bool begin_again(struct file_fetch *file)
{
    if (!file->is_kept || file->has_begun_again)
        return false;
    kept_addresses_forget(file->request.upstream->kept, &file->place, &file->request.address);
    file->has_begun_again = true;
    begin(file);
    return true;
}

/* --- answers --- */

/* What a kept address may fail with because it is old. Other failures took their time. */
static bool is_of_address(const struct remote_exchange *exchange)
{
    return exchange->failure == REMOTE_FAILURE_CONNECT || exchange->failure == REMOTE_FAILURE_TLS ||
           exchange->failure == REMOTE_FAILURE_CERTIFICATE ||
           exchange->failure == REMOTE_FAILURE_REFUSED;
}

static void take_failure(struct file_fetch *file)
{
    struct remote_exchange *exchange = &file->request.exchange;
    struct zt_error error;

    if (file->verdict == VERDICT_OTHER_FILE) {
        finish_stale(file);
        return;
    }
    if (is_of_address(exchange) && begin_again(file))
        return;
    /* The next request gets another address. */
    kept_addresses_forget(file->request.upstream->kept, &file->place, &file->request.address);
    if (file->verdict == VERDICT_SENSELESS)
        zt_fail(&error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                "the upstream sends other bytes than it was asked for");
    else
        judge_failure(exchange, &error);
    fail(file, &error);
}

static void take_redirect(struct file_fetch *file)
{
    struct upstream_request *request = &file->request;
    struct zt_error error;
    enum zt_status status;

    if (!judge_is_same_file(&file->place, &request->exchange.head, request->is_own)) {
        finish_stale(file);
        return;
    }
    status = upstream_request_redirect(request, &error);
    if (status != ZT_OK && begin_again(file))
        return;
    if (status == ZT_OK && address_is_same_origin(&request->address, &request->upstream->base))
        status = upstream_may_ask(request->upstream, &error);
    else if (status == ZT_OK)
        share_address(file);
    if (status == ZT_OK)
        send_request(file);
    else
        fail(file, &error);
}

static void take_refusal(struct file_fetch *file)
{
    const struct upstream_request *request = &file->request;
    const struct remote_head *head = &request->exchange.head;
    const struct judge_case judged = {head->status, head->error_code, request->has_token, true};
    struct zt_error error;

    if (begin_again(file))
        return;
    kept_addresses_forget(request->upstream->kept, &file->place, &request->address);
    if (request->is_own)
        judge_status(&judged, &error);
    else
        zt_fail(&error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                "the host to which the upstream redirects refuses the request (%u)", head->status);
    fail(file, &error);
}

/* A file that came whole in one request has no address to share. */
static void succeed(struct file_fetch *file)
{
    struct upstream_request *request = &file->request;
    struct file_fetch *joined = end_asking(file);

    if (request->hops > 0)
        kept_addresses_keep(request->upstream->kept, &file->place, &request->address);
    finish_one(file, ZT_OK, NULL);
    while (joined != NULL) {
        struct file_fetch *next = joined->next;

        begin(joined);
        joined = next;
    }
}

static void on_done(struct remote_exchange *exchange)
{
    struct file_fetch *file = (struct file_fetch *)exchange;
    struct upstream_request *request = &file->request;
    const unsigned status = exchange->head.status;

    upstream_note(request->upstream, exchange, request->is_own);
    file->arrived += exchange->arrived;
    remote_exchange_free(exchange);
    if (exchange->status != ZT_OK)
        take_failure(file);
    else if (status / 100 == 3)
        take_redirect(file);
    else if (status / 100 != 2)
        take_refusal(file);
    else
        succeed(file);
}

/* --- beginning --- */

static struct file_fetch *file_fetch_new(struct upstream *upstream,
                                         const struct upstream_place *place,
                                         struct cache_fetch *fetch)
{
    const size_t repository = strlen(place->repository) + 1;
    const size_t commit = strlen(place->commit) + 1;
    const size_t path = strlen(place->path) + 1;
    struct file_fetch *file = calloc(1, sizeof(*file) + repository + commit + path);

    if (file == NULL)
        return NULL;
    file->request.upstream = upstream;
    file->fetch = fetch;
    file->place = *place;
    file->place.repository = memcpy(file->texts, place->repository, repository);
    file->place.commit = memcpy(file->texts + repository, place->commit, commit);
    file->place.etag = NULL;
    file->place.path = memcpy(file->texts + repository + commit, place->path, path);
    return file;
}

void hub_fetch(struct upstream *upstream, const struct upstream_place *place,
               struct cache_fetch *fetch)
{
    struct file_fetch *file = file_fetch_new(upstream, place, fetch);
    struct zt_error error;

    if (file == NULL) {
        upstream_end_fetch(upstream, place->repository, fetch,
                           zt_fail_memory(&error, "a request to an upstream"), &error);
        return;
    }
    begin(file);
}
