/* Commits and lists: requests to the API, which a caller waits for. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/judge.h"
#include "upstream/listing.h"
#include "upstream/lookups.h"
#include "upstream/state.h"

/* Clients of Hubs give up after 10 s. */
#define COMMIT_MS     9000
#define COMMIT_TRY_MS 4500
#define LIST_MS       120000
#define LIST_TRY_MS   20000
#define LOOKUP_TRIES  4
/* For all digests that a list lacks. */
#define DIGESTS_MS 30000
/* Of an upstream that is away. */
#define BRIEF_MS 3000
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
    if (exchange->time_ms > BRIEF_MS)
        exchange->time_ms = BRIEF_MS;
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
    upstream_note(request);
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

/* Puts the outcome of a lookup where several callers can have it. */
static void fill_answer(struct lookup_request *lookup, enum zt_status status,
                        const struct zt_error *error, struct lookup_answer *answer)
{
    answer->status = upstream_fail(lookup->upstream, status, error);
    if (status == ZT_OK)
        return;
    answer->rule = error->rule;
    snprintf(answer->message, sizeof(answer->message), "%s", error->message);
}

static enum zt_status take_status(const struct lookup_answer *answer, struct zt_error *error)
{
    if (answer->status == ZT_OK)
        return ZT_OK;
    return zt_fail(error, answer->status, answer->rule, ZT_NO_OFFSET, "%s", answer->message);
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
    if (status == ZT_OK && listing_is_commit(lookup->revision) &&
        !zt_text_is(lookup->revision, answer->commit))
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the upstream's answer is for another commit");
    return status;
}

static void work_commit(void *context, struct lookup_answer *out_answer)
{
    struct lookup_request *lookup = context;
    struct zt_error error = {.status = ZT_OK};

    lookup->by_ms = clock_ms() + COMMIT_MS;
    lookup->try_ms = COMMIT_TRY_MS;
    fill_answer(lookup, find_commit(lookup, out_answer, &error), &error, out_answer);
}

/* Texts that may be in a request; what a client may not ask for was refused before. */
static bool is_name(struct zt_text text, size_t size)
{
    if (text.length == 0 || text.length >= size)
        return false;
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.bytes[i] <= ' ' || text.bytes[i] == 0x7F)
            return false;
    return true;
}

/* Whether a part of a path has another meaning in an address. */
static bool has_dots(const char *path)
{
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        size_t length;

        part += *part == '/';
        length = strcspn(part, "/");
        if (length == 0 || (length <= 2 && strspn(part, ".") >= length))
            return true;
    }
    return false;
}

static struct lookup_request *begin(struct upstream *upstream, const char *repository,
                                    struct zt_text revision, struct zt_error *error)
{
    struct lookup_request *lookup;

    if (!is_name(zt_text_from(repository), UPSTREAM_REPOSITORY_SIZE) || has_dots(repository)) {
        zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no repository can have this name");
        return NULL;
    }
    if (!is_name(revision, UPSTREAM_REVISION_SIZE) || zt_text_is(revision, ".") ||
        zt_text_is(revision, "..")) {
        zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "no revision can have this name");
        return NULL;
    }
    lookup = calloc(1, sizeof(*lookup));
    if (lookup == NULL) {
        zt_fail_memory(error, "a lookup");
        return NULL;
    }
    lookup->upstream = upstream;
    lookup->request.upstream = upstream;
    lookup->repository = repository;
    lookup->revision = revision;
    atomic_fetch_add(&upstream->lookup_count, 1);
    return lookup;
}

static enum zt_status run(struct lookup_request *lookup, const char *kind,
                          void (*work)(void *context, struct lookup_answer *out_answer),
                          struct lookup_answer *out_answer, struct zt_error *error)
{
    char key[LOOKUP_KEY_SIZE];
    enum zt_status status;

    snprintf(key, sizeof(key), "%s %s %.*s", kind, lookup->repository, (int)lookup->revision.length,
             lookup->revision.bytes);
    status = lookups_run(lookup->upstream->lookups, key, work, lookup, out_answer, error);
    free(lookup);
    return status == ZT_OK ? take_status(out_answer, error) : status;
}

enum zt_status upstream_find_commit(struct upstream *upstream, const char *repository,
                                    struct zt_text revision, char out_commit[UPSTREAM_COMMIT_SIZE],
                                    int64_t *out_modified_ns, struct zt_error *error)
{
    struct zt_error own = {.status = ZT_OK};
    struct lookup_request *lookup = begin(upstream, repository, revision, &own);
    struct lookup_answer answer = {.listing = NULL};
    enum zt_status status =
        lookup != NULL ? run(lookup, "commit", work_commit, &answer, &own) : own.status;

    if (status != ZT_OK) {
        if (error != NULL)
            *error = own;
        return status;
    }
    memcpy(out_commit, answer.commit, UPSTREAM_COMMIT_SIZE);
    *out_modified_ns = answer.modified_ns;
    return ZT_OK;
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

/* Asks for the digest of one file. Returns false if more requests are useless now. */
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
    return has_answer;
}

/* A ztserve lists files before it knows their digests, and computes them when they are wanted.
 * Digests that do not arrive in time stay unknown until the list is read again. */
static void ask_digests(struct lookup_request *lookup, struct listing_builder *builder,
                        const char *commit)
{
    struct upstream_file *file = NULL;
    const int64_t digests_by_ms = clock_ms() + DIGESTS_MS;

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
    struct listing_builder *builder = listing_begin(lookup->upstream->kind);
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
    if (status == ZT_OK && lookup->upstream->kind == UPSTREAM_ZTSERVE)
        ask_digests(lookup, builder, commit);
    if (status == ZT_OK)
        return listing_end(builder, commit, &answer->listing, error);
    listing_drop(builder);
    return status;
}

static void work_list(void *context, struct lookup_answer *out_answer)
{
    struct lookup_request *lookup = context;
    struct zt_error error = {.status = ZT_OK};

    lookup->by_ms = clock_ms() + LIST_MS;
    lookup->try_ms = LIST_TRY_MS;
    fill_answer(lookup, list(lookup, out_answer, &error), &error, out_answer);
}

enum zt_status upstream_list(struct upstream *upstream, const char *repository, const char *commit,
                             struct upstream_listing **out_listing, struct zt_error *error)
{
    struct zt_error own = {.status = ZT_OK};
    struct lookup_request *lookup;
    struct lookup_answer answer = {.listing = NULL};
    enum zt_status status;

    assert(listing_is_commit(zt_text_from(commit)));
    lookup = begin(upstream, repository, zt_text_from(commit), &own);
    status = lookup != NULL ? run(lookup, "list", work_list, &answer, &own) : own.status;
    if (status == ZT_OK)
        *out_listing = answer.listing;
    else if (error != NULL)
        *error = own;
    return status;
}
