/* Commits and lists of a Hub: requests to its API, which a caller waits for. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/hub.h"
#include "upstream/judge.h"
#include "upstream/listing.h"
#include "upstream/state.h"

/* Clients of Hubs give up after 10 s, so the time for a commit allows two tries. */
#define COMMIT_TRY_MS 4500
#define LIST_TRY_MS   20000
#define LOOKUP_TRIES  4
/* The answer about a repository may list its files, without digests. */
#define COMMIT_BYTES_MOST LISTING_PAGE_MOST

struct lookup_request {
    struct upstream *upstream;
    const char *repository;
    struct zt_text revision;
    /* One request after another. */
    struct upstream_request request;
    int64_t by_ms;
    uint64_t try_ms;
    bool is_digest; /* HEAD: only the digest of a file is wanted */
};

/* --- one request --- */

static void limit_time(struct lookup_request *lookup, int64_t now_ms)
{
    struct remote_exchange *exchange = &lookup->request.exchange;

    exchange->tries = lookup->is_digest ? 1 : LOOKUP_TRIES;
    exchange->time_ms = (uint64_t)(lookup->by_ms - now_ms);
    exchange->try_ms = lookup->try_ms;
    if (!atomic_load(&lookup->upstream->is_away))
        return;
    exchange->tries = 1;
    if (exchange->time_ms > LOOKUP_BRIEF_MS)
        exchange->time_ms = LOOKUP_BRIEF_MS;
}

static enum zt_status fail_late(struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                   "the upstream takes too long to answer");
}

static enum zt_status fail_pause(struct zt_error *error, int64_t pause_ms)
{
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                   "the upstream limits requests, and does not want any for another %lld s",
                   (long long)(pause_ms / 1000 + 1));
}

/* Sends one request; the answer is kept in the exchange. ZT_OK: with a 2xx or a 3xx. */
static enum zt_status send_one(struct lookup_request *lookup, size_t body_most,
                               struct zt_error *error)
{
    struct upstream_request *request = &lookup->request;
    const struct remote_head *head = &request->exchange.head;
    const int64_t now_ms = clock_ms();
    const int64_t pause_ms = atomic_load(&lookup->upstream->pause_until_ms) - now_ms;
    enum zt_status status;

    if (now_ms >= lookup->by_ms)
        return fail_late(error);
    if (pause_ms > 0 && now_ms + pause_ms >= lookup->by_ms)
        return fail_pause(error, pause_ms);
    status = upstream_may_ask(lookup->upstream, error);
    if (status != ZT_OK)
        return status;
    upstream_request_prepare(request);
    request->exchange.body_most = body_most;
    request->exchange.is_urgent = true;
    if (lookup->is_digest) {
        request->exchange.method = "HEAD";
        remote_exchange_add(&request->exchange, "want-repr-digest", "sha-256=10");
    }
    limit_time(lookup, now_ms);
    remote_run(lookup->upstream->remote, &request->exchange);
    upstream_note(lookup->upstream, &request->exchange, request->is_own);
    if (request->exchange.status != ZT_OK)
        return judge_failure(&request->exchange, error);
    if (head->status / 100 == 2 || head->status / 100 == 3)
        return ZT_OK;
    return judge_status(
        &(struct judge_case){head->status, head->error_code, request->has_token, .is_file = false},
        error);
}

/* Sends the request of lookup->request.address, and follows redirects within the origin. */
static enum zt_status ask(struct lookup_request *lookup, size_t body_most, struct zt_error *error)
{
    struct upstream_request *request = &lookup->request;
    const struct remote_exchange *exchange = &request->exchange;

    request->hops = 0;
    for (;;) {
        enum zt_status status = send_one(lookup, body_most, error);

        if (status == ZT_OK && exchange->head.status / 100 == 2 && exchange->answer != NULL &&
            !exchange->head.is_compressed)
            return ZT_OK;
        if (status == ZT_OK && exchange->head.status / 100 == 2)
            status = zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                             "the upstream's answer is empty or compressed");
        if (status == ZT_OK)
            status = upstream_request_redirect(request, error);
        upstream_request_end(request);
        if (status != ZT_OK)
            return status;
        if (!address_is_same_origin(&request->address, &lookup->upstream->base))
            return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                           "the upstream redirects its API to another host");
    }
}

static struct zt_text answer_of(const struct lookup_request *lookup)
{
    return (struct zt_text){lookup->request.exchange.answer,
                            lookup->request.exchange.answer_length};
}

/* NULL without memory. */
static struct lookup_request *begin(const struct upstream_question *question, int64_t time_ms,
                                    uint64_t try_ms)
{
    struct lookup_request *lookup = calloc(1, sizeof(*lookup));

    if (lookup == NULL)
        return NULL;
    lookup->upstream = question->upstream;
    lookup->request.upstream = question->upstream;
    lookup->repository = question->repository;
    lookup->revision = question->revision;
    lookup->by_ms = clock_ms() + time_ms;
    lookup->try_ms = try_ms;
    return lookup;
}

/* --- commits --- */

static enum zt_status find_commit(struct lookup_request *lookup, struct lookup_answer *answer,
                                  struct zt_error *error)
{
    struct target_writer writer;
    enum zt_status status;

    target_begin(&writer, &lookup->request);
    target_plain(&writer, "/api/models/");
    target_encoded(&writer, zt_text_from(lookup->repository), true);
    target_plain(&writer, "/revision/");
    target_encoded(&writer, lookup->revision, false);
    /* A Hub that knows this leaves out the list of files. */
    target_plain(&writer, "?expand=lastModified&expand=sha");
    assert(!writer.is_too_long);
    status = ask(lookup, COMMIT_BYTES_MOST, error);
    if (status != ZT_OK)
        return status;
    status = listing_read_commit(answer_of(lookup), answer->commit, &answer->modified_ns, error);
    upstream_request_end(&lookup->request);
    if (status == ZT_OK && upstream_is_commit(lookup->revision) &&
        !zt_text_is(lookup->revision, answer->commit))
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the upstream's answer is for another commit");
    return status;
}

enum zt_status hub_find_commit(const struct upstream_question *question,
                               struct lookup_answer *out_answer, struct zt_error *error)
{
    struct lookup_request *lookup = begin(question, LOOKUP_COMMIT_MS, COMMIT_TRY_MS);
    const enum zt_status status =
        lookup != NULL ? find_commit(lookup, out_answer, error) : zt_fail_memory(error, "a lookup");

    free(lookup);
    return status;
}

/* --- lists --- */

/* Sets the address of the next page. *out_is_last: there is none. */
static enum zt_status find_next(struct lookup_request *lookup, bool *out_is_last,
                                struct zt_error *error)
{
    struct upstream_request *request = &lookup->request;
    const struct remote_head *head = &request->exchange.head;
    struct upstream_address next;
    struct zt_text url;
    const enum address_link link =
        head->is_link_cut ? ADDRESS_LINK_MALFORMED : address_next(zt_text_from(head->link), &url);

    *out_is_last = link == ADDRESS_LINK_NONE;
    if (*out_is_last)
        return ZT_OK;
    if (link == ADDRESS_LINK_MALFORMED || !address_follow(&request->address, url, &next))
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the upstream's link to the next page of a list makes no sense");
    /* Behind a proxy that ends TLS, an upstream may take its own scheme for http. */
    if (strcmp(strstr(next.origin, "://"), strstr(lookup->upstream->base.origin, "://")) != 0)
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the upstream's link to the next page leads to another host");
    memcpy(next.origin, lookup->upstream->base.origin, sizeof(next.origin));
    if (strcmp(next.target, request->address.target) == 0)
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the upstream's link to the next page leads to the same page");
    request->address = next;
    return ZT_OK;
}

static enum zt_status list_pages(struct lookup_request *lookup, struct listing_builder *builder,
                                 struct zt_error *error)
{
    size_t left = LISTING_BYTES_MOST;
    bool is_last = false;

    for (unsigned page = 0; !is_last; page++) {
        enum zt_status status;

        if (page == LISTING_PAGES_MOST || left == 0)
            return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                           "the upstream's list of files is too long");
        status = ask(lookup, left < LISTING_PAGE_MOST ? left : LISTING_PAGE_MOST, error);
        if (status != ZT_OK)
            return status;
        left -= lookup->request.exchange.answer_length;
        status = listing_add_page(builder, answer_of(lookup), error);
        if (status == ZT_OK)
            status = find_next(lookup, &is_last, error);
        upstream_request_end(&lookup->request);
        if (status != ZT_OK)
            return status;
    }
    return ZT_OK;
}

/* Asks for the digest of one file. Returns false if more requests are useless now: there is no
 * answer, or a Hub that need not be a ztserve does not state the digest. */
static bool ask_digest(struct lookup_request *lookup, const char *commit,
                       struct upstream_file *file)
{
    struct upstream_request *request = &lookup->request;
    const struct remote_head *head = &request->exchange.head;
    struct target_writer writer;
    struct zt_error ignored;
    bool has_answer;

    target_begin(&writer, request);
    target_plain(&writer, "/");
    target_encoded(&writer, zt_text_from(lookup->repository), true);
    target_plain(&writer, "/resolve/");
    target_plain(&writer, commit);
    target_plain(&writer, "/");
    target_encoded(&writer, zt_text_from(file->path), true);
    if (writer.is_too_long)
        return true;
    has_answer = send_one(lookup, 0, &ignored) == ZT_OK;
    if (has_answer && head->status == 200 && head->content_length == file->size_bytes &&
        strcmp(head->repo_commit, commit) == 0 &&
        judge_read_digest(head->repr_digest, file->digest))
        file->digest_kind = UPSTREAM_SHA256;
    upstream_request_end(request);
    return has_answer &&
           (lookup->upstream->kind->states_digests_late || file->digest_kind != UPSTREAM_NO_DIGEST);
}

/* A ztserve lists files before it knows their digests (with "lfs": null), and computes them when
 * they are wanted. Digests that do not arrive in time stay unknown until the list is read again. */
static void ask_digests(struct lookup_request *lookup, struct listing_builder *builder,
                        const char *commit)
{
    struct upstream_file *file = NULL;
    const int64_t digests_by_ms = clock_ms() + LOOKUP_DIGESTS_MS;

    if (digests_by_ms < lookup->by_ms)
        lookup->by_ms = digests_by_ms;
    lookup->is_digest = true;
    while ((file = listing_without_digest(builder, file)) != NULL)
        if (!ask_digest(lookup, commit, file))
            break;
    lookup->is_digest = false;
}

static enum zt_status list(struct lookup_request *lookup, struct lookup_answer *answer,
                           struct zt_error *error)
{
    const bool is_late = lookup->upstream->kind->states_digests_late;
    struct listing_builder *builder = listing_begin(!is_late);
    char commit[UPSTREAM_COMMIT_SIZE];
    struct target_writer writer;
    enum zt_status status;

    if (builder == NULL)
        return zt_fail_memory(error, "a list of files");
    memcpy(commit, lookup->revision.bytes, lookup->revision.length);
    commit[lookup->revision.length] = '\0';
    target_begin(&writer, &lookup->request);
    target_plain(&writer, "/api/models/");
    target_encoded(&writer, zt_text_from(lookup->repository), true);
    target_plain(&writer, "/tree/");
    target_plain(&writer, commit);
    target_plain(&writer, "?recursive=true");
    assert(!writer.is_too_long);
    status = list_pages(lookup, builder, error);
    if (status == ZT_OK && (is_late || listing_states_digests_late(builder)))
        ask_digests(lookup, builder, commit);
    if (status == ZT_OK)
        return listing_end(builder, commit, &answer->listing, error);
    listing_drop(builder);
    return status;
}

enum zt_status hub_list(const struct upstream_question *question, struct lookup_answer *out_answer,
                        struct zt_error *error)
{
    struct lookup_request *lookup = begin(question, LOOKUP_LIST_MS, LIST_TRY_MS);
    const enum zt_status status =
        lookup != NULL ? list(lookup, out_answer, error) : zt_fail_memory(error, "a lookup");

    free(lookup);
    return status;
}
