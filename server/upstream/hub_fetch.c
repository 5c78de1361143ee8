/* Ranges of a Hub's files, without a thread that waits: the request to the upstream, the redirects,
 * and the bytes, all on the remote's thread.
 *
 *     address kept ──► bytes ──► done
 *          │ it does not work any more
 *          ▼
 *     the upstream ──► redirect ──► … ──► bytes ──► done */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/hub.h"
#include "upstream/judge.h"
#include "upstream/kept_addresses.h"
#include "upstream/state.h"

#define MIB ((uint64_t)1 << 20)
/* One range may take this long: lines of 64 KiB/s are served. */
#define FETCH_MS       30000
#define FETCH_MS_A_MIB 16000
/* A line that is slower than this for ten seconds is taken for dead. */
#define SLOW_BYTES_S 4096
/* For short ranges, whose speed proves nothing. */
#define SHORT_TRY_MS 20000
#define FETCH_TRIES  4
/* While the upstream is away. */
#define BRIEF_MS 3000

enum verdict { VERDICT_NONE, VERDICT_OTHER_FILE, VERDICT_SENSELESS };

struct file_fetch {
    struct upstream_request request; /* first */
    struct cache_fetch *fetch;
    struct upstream_place place; /* with copies of the texts */
    uint64_t arrived;            /* bytes fetched by earlier exchanges */
    enum verdict verdict;        /* of a header with a 2xx */
    bool is_kept;                /* the address is one that was kept */
    bool has_begun_again;
    char texts[];
};

/* --- the end --- */

static void finish(struct file_fetch *file, enum zt_status status, const struct zt_error *error)
{
    struct cache_fetch *fetch = file->fetch;
    struct upstream *upstream = file->request.upstream;

    upstream_request_end(&file->request);
    free(file);
    upstream_end_fetch(upstream, fetch, status, error);
}

static void finish_stale(struct file_fetch *file)
{
    struct zt_error error;

    kept_addresses_forget(file->request.upstream->kept, &file->place, &file->request.address);
    finish(file,
           zt_fail(&error, ZT_STALE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                   "the upstream has another file there than the commit had"),
           &error);
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

static bool accept_answer(struct remote_exchange *exchange)
{
    struct file_fetch *file = (struct file_fetch *)exchange;

    file->verdict = VERDICT_NONE;
    if (!judge_is_same_file(&file->place, &exchange->head, file->request.is_own))
        file->verdict = VERDICT_OTHER_FILE;
    else if (!is_range(file, &exchange->head))
        file->verdict = VERDICT_SENSELESS;
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

static uint64_t time_ms(const struct file_fetch *file)
{
    return FETCH_MS + file->fetch->length * FETCH_MS_A_MIB / MIB;
}

static void limit_time(struct file_fetch *file)
{
    struct upstream *upstream = file->request.upstream;
    struct remote_exchange *exchange = &file->request.exchange;

    exchange->tries = FETCH_TRIES;
    exchange->time_ms = time_ms(file);
    exchange->try_ms = file->fetch->length < MIB ? SHORT_TRY_MS : time_ms(file);
    exchange->slow_bytes_s = SLOW_BYTES_S;
    if (!file->request.is_own || !atomic_load(&upstream->is_away))
        return;
    exchange->tries = 1;
    exchange->time_ms = BRIEF_MS + file->fetch->length * 1000 / MIB;
}

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
    limit_time(file);
    remote_begin(file->request.upstream->remote, exchange);
}

/* Asks the upstream itself. */
static void ask_upstream(struct file_fetch *file)
{
    struct upstream_request *request = &file->request;
    struct target_writer writer;
    struct zt_error error;
    enum zt_status status = upstream_may_ask(request->upstream, &error);

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
        finish(file, status, &error);
}

/* Forgets a kept address that does not work any more, and begins again. Returns false if no address
 * is left to try. */
static bool begin_again(struct file_fetch *file)
{
    if (!file->is_kept || file->has_begun_again)
        return false;
    kept_addresses_forget(file->request.upstream->kept, &file->place, &file->request.address);
    file->has_begun_again = true;
    ask_upstream(file);
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
    enum zt_status status;

    if (file->verdict == VERDICT_OTHER_FILE) {
        finish_stale(file);
        return;
    }
    if (is_of_address(exchange) && begin_again(file))
        return;
    /* The next request gets another address. */
    kept_addresses_forget(file->request.upstream->kept, &file->place, &file->request.address);
    if (file->verdict == VERDICT_SENSELESS)
        status = zt_fail(&error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                         "the upstream sends other bytes than it was asked for");
    else
        status = judge_failure(exchange, &error);
    finish(file, status, &error);
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
    if (status == ZT_OK)
        send_request(file);
    else
        finish(file, status, &error);
}

static void take_refusal(struct file_fetch *file)
{
    const struct upstream_request *request = &file->request;
    const struct remote_head *head = &request->exchange.head;
    const struct judge_case judged = {head->status, head->error_code, request->has_token, true};
    struct zt_error error;
    enum zt_status status;

    if (begin_again(file))
        return;
    if (request->is_own)
        status = judge_status(&judged, &error);
    else
        status = zt_fail(&error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                         "the host to which the upstream redirects refuses the request (%u)",
                         head->status);
    finish(file, status, &error);
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
    else {
        if (request->hops > 0)
            kept_addresses_keep(request->upstream->kept, &file->place, &request->address);
        finish(file, ZT_OK, NULL);
    }
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
    file->place.path = memcpy(file->texts + repository + commit, place->path, path);
    return file;
}

void hub_fetch(struct upstream *upstream, const struct upstream_place *place,
               struct cache_fetch *fetch)
{
    struct file_fetch *file = file_fetch_new(upstream, place, fetch);
    struct zt_error error;

    if (file == NULL) {
        upstream_end_fetch(upstream, fetch, zt_fail_memory(&error, "a request to an upstream"),
                           &error);
        return;
    }
    file->is_kept = kept_addresses_find(upstream->kept, &file->place, &file->request.address);
    if (!file->is_kept || atomic_load(&upstream->is_offline) || atomic_load(&upstream->is_stopped))
        ask_upstream(file);
    else
        send_request(file);
}
