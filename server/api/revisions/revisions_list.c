/* GET /v1/models/{model}/revisions: the commits of the model's repository, the youngest first.
 *
 * With wait and after, the answer is delayed until the branch has another commit. Such requests
 * occupy no thread: the history or the clock wakes them. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_reply.h"
#include "api/parameters.h"
#include "api/revisions/handlers.h"
#include "api/revisions/revision_entry.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/timed_waits.h"
#include "catalog/catalog.h"
#include "http/revisions/revision.h"
#include "store/versions/versions_store.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     1000
/* Proxies often end requests that last longer. */
#define WAIT_MAX_S 300
/* How often to read a log that is not in memory when a wait begins. */
#define WAIT_TRIES 3

struct page {
    struct zt_text model;
    struct zt_text revision;
    struct zt_text after; /* the commit that the client knows; bytes NULL: it does not wait */
    int64_t due_ms;       /* clock_ms at which it gets an answer in any case */
    uint64_t below;
    size_t limit;
    bool pretty;
    bool is_waiting;
    char head[HISTORY_COMMIT_SIZE]; /* while it is waiting */
    unsigned tries;
    struct timed_wait wait;

    enum zt_status status;
    struct zt_error error;
    struct history *history; /* NULL: versions are not kept */
    struct history_repo repo;
    struct history_commit *commits; /* one more than limit if more follow */
    size_t count;
    struct history_ref *refs;
    size_t ref_count;
    bool is_mirrored;
    struct revision_found mirrored;
    struct server *server;
};

static void clear(struct page *page)
{
    free(page->commits);
    free(page->refs);
    page->commits = NULL;
    page->refs = NULL;
    page->count = page->ref_count = 0;
}

static void release_page(void *thing)
{
    struct page *page = thing;

    timed_waits_remove(page->server->waits, &page->wait);
    clear(page);
}

/* --- the query; false: replied --- */

static bool refuse(struct request *request, const char *why)
{
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", why);
    return false;
}

/* Reads a number up to a maximum. Does not touch *out_number if the parameter is absent. */
static bool read_number(struct request *request, const char *name, uint64_t most,
                        uint64_t *out_number)
{
    struct zt_text text;
    uint64_t number;

    if (!request_query(request, name, 0, &text))
        return true;
    if (!parameter_once(request, name))
        return false;
    if (zt_decimal_read(text, most, &number)) {
        *out_number = number;
        return true;
    }
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s must be a number up to %" PRIu64, name,
                  most);
    return false;
}

static bool read_wait(struct request *request, struct page *page)
{
    uint64_t wait_s = UINT64_MAX;

    if (!read_number(request, "wait", WAIT_MAX_S, &wait_s) || !parameter_once(request, "after"))
        return false;
    if (!request_query(request, "after", 0, &page->after))
        return wait_s == UINT64_MAX || refuse(request, "wait needs after=COMMIT, the commit that "
                                                       "the client knows");
    if (wait_s == UINT64_MAX)
        return refuse(request, "after needs wait=SECONDS");
    if (page->after.length > 0 && !zt_hex_is_lower(page->after, HISTORY_COMMIT_SIZE - 1))
        return refuse(request, "after must be a commit of 40 hex digits");
    page->due_ms = clock_ms() + (int64_t)wait_s * 1000;
    return true;
}

static bool read_query(struct request *request, struct page *page)
{
    uint64_t limit = LIMIT_DEFAULT;

    page->below = UINT64_MAX;
    if (!read_number(request, "limit", LIMIT_MAX, &limit) ||
        !read_number(request, "cursor", INT64_MAX, &page->below) || !read_wait(request, page) ||
        !parameter_once(request, "revision") || !parameter_switch(request, "pretty", &page->pretty))
        return false;
    if (limit == 0)
        return refuse(request, "limit must be a number from 1 to 1000");
    page->limit = (size_t)limit;
    page->revision =
        request->revision.bytes != NULL ? request->revision : zt_text_from(HISTORY_MAIN);
    (void)request_query(request, "revision", 0, &page->revision);
    return true;
}

/* Returns NULL if it has replied. */
static struct page *begin(struct request *request)
{
    struct page *page = request_allocate(request, sizeof(*page));

    if (page == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    memset(page, 0, sizeof(*page));
    page->server = request->server;
    page->model = request->names[0];
    page->history = store_history(request->server->store);
    if (!model_name_is_valid(page->model)) {
        problem_reply(request, PROBLEM_INVALID_NAME, "this cannot be the name of a model");
        return NULL;
    }
    if (!read_query(request, page))
        return NULL;
    request_hold(request, page, release_page);
    return page;
}

/* --- on a worker --- */

static void read_page(struct request *request)
{
    struct page *page = request->context;

    clear(page);
    page->status = ZT_NOT_FOUND;
    if (page->history != NULL) {
        history_repo_of_model(page->history, page->model, &page->repo);
        page->status =
            history_list(page->history, &page->repo,
                         &(struct history_range){page->revision, page->below, page->limit + 1},
                         &page->commits, &page->count, &page->error);
    }
    if (page->status == ZT_OK) {
        page->status =
            history_refs(page->history, &page->repo, &page->refs, &page->ref_count, &page->error);
    } else if (page->status == ZT_NOT_FOUND) {
        page->status = revision_look_up(page->server, page->model, REVISION_OF_MODEL,
                                        page->revision, &page->mirrored, &page->error);
        page->is_mirrored = page->status == ZT_OK;
    }
}

/* --- waiting --- */

static const char *head_of(const struct page *page)
{
    return page->count > 0 ? page->commits[0].id : "";
}

/* A page is large, and is read again after the wait. */
static void keep_head_only(struct page *page)
{
    snprintf(page->head, sizeof(page->head), "%s", head_of(page));
    clear(page);
}

/* Returns true if the head has moved since the page was read. From memory, because it was read. */
static bool has_moved(const struct page *page)
{
    struct history_found found;
    struct zt_error ignored;
    const bool is_found =
        history_find(page->history, &page->repo, page->revision, &found, &ignored) == ZT_OK;

    return strcmp(is_found ? found.commit : "", page->head) != 0;
}

/* A client that knows another commit, or asks for a later page, gets its answer at once. */
static bool must_wait(const struct page *page)
{
    return page->after.bytes != NULL && page->history != NULL && !page->is_mirrored &&
           page->below == UINT64_MAX && (page->status == ZT_OK || page->status == ZT_NOT_FOUND) &&
           zt_text_is(page->after, head_of(page)) && clock_ms() < page->due_ms;
}

static bool forget(void *history, struct waiter *waiter)
{
    return history_forget_waiter(history, waiter);
}

static enum outcome read_again(struct request *request, struct page *page)
{
    page->is_waiting = false;
    return history_is_shared(page->history) ? request_work(request, read_page)
                                            : request_work_here(request, read_page);
}

/* The head may move before the history knows of the waiter, so it is looked at again. */
static enum outcome wait_for_change(struct request *request, struct page *page)
{
    struct waiter *waiter = request_waiter(request);

    if (!history_wait(page->history, &page->repo, UINT64_MAX, waiter)) {
        /* The history has forgotten what was read from its log. */
        page->due_ms = page->tries++ < WAIT_TRIES ? page->due_ms : 0;
        return read_again(request, page);
    }
    page->is_waiting = true;
    keep_head_only(page);
    page->wait = (struct timed_wait){
        .waiter = waiter, .due_ms = page->due_ms, .forget = forget, .context = page->history};
    if (!has_moved(page) && timed_waits_add(page->server->waits, &page->wait))
        return OUTCOME_WAITING;
    page->due_ms = 0;
    return history_forget_waiter(page->history, waiter) ? read_again(request, page)
                                                        : OUTCOME_WAITING;
}

/* --- the answer --- */

static void write_mirrored(struct json *json, const struct request *request,
                           const struct page *page)
{
    struct store_revision revision = {.is_current = zt_text_is(page->revision, HISTORY_MAIN)};

    memcpy(revision.commit, page->mirrored.commit, sizeof(revision.commit));
    revision_entry_write_mirrored(json, request->server->config->base_path, &revision,
                                  zt_text_from(page->mirrored.name), page->revision);
}

static void write_commits(struct json *json, const struct request *request, const struct page *page)
{
    const struct revision_entry entry = {.base_path = request->server->config->base_path,
                                         .repo = &page->repo,
                                         .model = page->model,
                                         .refs = page->refs,
                                         .ref_count = page->ref_count,
                                         .shows_notes = revision_shows_notes(request, &page->repo)};

    for (size_t i = 0; i < page->count && i < page->limit; i++)
        revision_entry_write(json, &entry, &page->commits[i]);
}

static enum outcome reply(struct request *request, const struct page *page)
{
    const bool has_more = page->count > page->limit;
    struct json *json = json_reply_new(request, page->pretty);

    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_key_string(json, "revisions");
    json_array_begin(json);
    if (page->is_mirrored)
        write_mirrored(json, request, page);
    else
        write_commits(json, request, page);
    json_array_end(json);
    json_key_string(json, "next");
    if (has_more)
        json_put_string(json,
                        request_print(request, "%" PRIu64, page->commits[page->limit - 1].number));
    else
        json_put_null(json);
    json_object_end(json);
    json_reply_send(request, json);
    if (!json->failed)
        request->reply.cache_control = "no-store";
    return OUTCOME_READY;
}

/* Returns true if the model exists, but has no commits, or none are kept. */
static bool has_no_commits(const struct request *request, const struct page *page)
{
    struct generation *generation;

    if (!zt_text_is(page->revision, HISTORY_MAIN))
        return false;
    generation = catalog_peek(request->server->catalog, page->model);
    generation_release(generation);
    return generation != NULL;
}

enum outcome revisions_get(struct request *request)
{
    struct page *page = request->context;

    if (page == NULL) {
        page = begin(request);
        request->context = page;
        return page != NULL ? request_work(request, read_page) : OUTCOME_READY;
    }
    if (page->is_waiting) {
        timed_waits_remove(page->server->waits, &page->wait);
        return read_again(request, page);
    }
    if (must_wait(page))
        return wait_for_change(request, page);
    if (page->status == ZT_NOT_FOUND && has_no_commits(request, page))
        page->status = ZT_OK;
    return page->status == ZT_OK ? reply(request, page)
                                 : revision_reply_failure(request, &page->error);
}
