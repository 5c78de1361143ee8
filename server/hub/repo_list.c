/* The repositories that a request searches for. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/json_reply.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/base_url.h"
#include "http/fields/uri.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "hub/repo_index.h"
#include "hub/repo_info.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX     10000
#define FILTERS_MAX   8
/* Of repositories with their files, each of which has to be listed. */
#define FULL_MAX 100
/* Of a cursor by time: "-9223372036854775808:", and a name. */
#define CURSOR_SIZE (HUB_REPO_SIZE + 24)

struct search {
    struct zt_text author;
    struct zt_text text;
    /* What the page before ended with; it need not be there any more. */
    bool has_after;
    int64_t after_ns; /* by time */
    char after[CURSOR_SIZE];
    struct zt_text filters[FILTERS_MAX];
    unsigned filter_count;
    size_t limit;
    bool by_time;
    bool is_full; /* with commits and files */
    bool has_begun;
    bool is_made; /* the index */
    enum zt_status status;
    struct repo_index index;
    struct zt_error error;
    /* The page, written on the worker. */
    struct json *json; /* held by the request */
    size_t at;         /* in the index */
    size_t count;
    const struct repo_summary *last; /* that was written */
    struct hub_lookup lookup;        /* of the repository at `at`; is_full */
    bool is_busy;                    /* it is being listed by somebody else */
};

static void free_search(void *thing)
{
    repo_index_free(&((struct search *)thing)->index);
}

static bool sees(const void *request, struct zt_text path)
{
    return authorize_sees_file(request, path);
}

/* --- the query --- */

/* A name, or by time "NS:NAME". One that the server has not made begins anew. */
static void read_cursor(struct request *request, struct search *search)
{
    struct zt_text text;
    char *colon;

    if (!request_query(request, "cursor", 0, &text) || text.length == 0 ||
        text.length >= sizeof(search->after))
        return;
    memcpy(search->after, text.bytes, text.length);
    search->has_after = true;
    if (!search->by_time)
        return;
    errno = 0;
    search->after_ns = strtoll(search->after, &colon, 10);
    search->has_after = errno == 0 && colon != search->after && *colon == ':';
    if (search->has_after)
        memmove(search->after, colon + 1, strlen(colon + 1) + 1);
}

static bool asks_for_files(struct request *request)
{
    static const char *const names[] = {"expand", "expand[]"};
    struct zt_text text;

    if (hub_switch(request, "full"))
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (unsigned nth = 0; request_query(request, names[i], nth, &text); nth++)
            if (zt_text_is(text, "sha") || zt_text_is(text, "siblings"))
                return true;
    return false;
}

/* filter=a&filter=b and filter=a,b: repositories that have all tags. */
static void read_filters(struct request *request, struct search *search)
{
    struct zt_text text;

    for (unsigned nth = 0; request_query(request, "filter", nth, &text); nth++) {
        while (text.length > 0 && search->filter_count < FILTERS_MAX) {
            const char *comma = memchr(text.bytes, ',', text.length);
            const size_t length = comma != NULL ? (size_t)(comma - text.bytes) : text.length;

            search->filters[search->filter_count++] = (struct zt_text){text.bytes, length};
            text.bytes += comma != NULL ? length + 1 : length;
            text.length -= comma != NULL ? length + 1 : length;
        }
    }
}

/* NULL: replied. */
static struct search *begin(struct request *request)
{
    struct search *search = request_allocate(request, sizeof(*search));
    struct zt_text sort;

    if (search == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    memset(search, 0, sizeof(*search));
    request->context = search;
    request_hold(request, search, free_search);
    (void)request_query(request, "author", 0, &search->author);
    (void)request_query(request, "search", 0, &search->text);
    search->is_full = asks_for_files(request);
    search->limit = search->is_full ? hub_limit(request, FULL_MAX, FULL_MAX)
                                    : hub_limit(request, LIMIT_DEFAULT, LIMIT_MAX);
    search->by_time = request_query(request, "sort", 0, &sort) &&
                      (zt_text_is(sort, "lastModified") || zt_text_is(sort, "last_modified") ||
                       zt_text_is(sort, "createdAt"));
    read_cursor(request, search);
    read_filters(request, search);
    search->json = json_reply_new(request, false);
    return search->json != NULL ? search : NULL;
}

/* --- what is found --- */

static bool has_text(const char *name, struct zt_text text)
{
    const size_t length = strlen(name);

    for (size_t i = 0; i + text.length <= length; i++)
        if (text.length == 0 || strncasecmp(name + i, text.bytes, text.length) == 0)
            return true;
    return false;
}

static bool has_author(const char *name, struct zt_text author)
{
    return author.length == 0 ||
           (zt_text_starts_with(zt_text_from(name), author) && name[author.length] == '/');
}

static bool has_tag(const struct repo_summary *repo, struct zt_text tag)
{
    for (unsigned i = 0; hub_tag_at(i) != NULL; i++)
        if ((repo->tags >> i & 1) != 0 && zt_text_is(tag, hub_tag_at(i)))
            return true;
    return false;
}

static bool is_wanted(const struct search *search, const struct repo_summary *repo)
{
    if (!has_author(repo->name, search->author) || !has_text(repo->name, search->text))
        return false;
    for (unsigned i = 0; i < search->filter_count; i++)
        if (!has_tag(repo, search->filters[i]))
            return false;
    return true;
}

static int compare_times(const void *a, const void *b)
{
    const struct repo_summary *first = a;
    const struct repo_summary *second = b;

    if (first->modified_ns != second->modified_ns)
        return first->modified_ns < second->modified_ns ? 1 : -1;
    return strcmp(first->name, second->name);
}

/* Whether it comes after what the page before ended with. */
static bool is_behind(const struct search *search, const struct repo_summary *repo)
{
    if (!search->has_after)
        return true;
    if (search->by_time && repo->modified_ns != search->after_ns)
        return repo->modified_ns < search->after_ns;
    return strcmp(repo->name, search->after) > 0;
}

/* --- the page, on a worker --- */

static bool make_index(struct request *request, struct search *search)
{
    if (search->is_made)
        return true;
    search->status = repo_index_make(request->server, (struct name_filter){sees, request},
                                     &search->index, &search->error);
    if (search->status != ZT_OK)
        return false;
    search->is_made = true;
    if (search->by_time && search->index.count > 0)
        qsort(search->index.repos, search->index.count, sizeof(*search->index.repos),
              compare_times);
    return true;
}

/* Looks the repository up. False: somebody else is listing it. */
static bool find_version(struct request *request, struct search *search,
                         const struct repo_summary *repo)
{
    if (!search->is_busy)
        search->lookup =
            (struct hub_lookup){.name = zt_text_from(repo->name), .revision = zt_text_from("main")};
    hub_repos_find(request->server->hub, &search->lookup);
    search->is_busy = search->lookup.found == HUB_BUSY;
    return !search->is_busy;
}

/* Of a repository that cannot be listed now the rest is told. */
static void write_files(struct request *request, struct search *search)
{
    struct hub_version *version = search->lookup.version;

    if (search->lookup.found == HUB_FOUND) {
        hub_json_string(search->json, "sha", version->commit);
        repo_info_siblings(search->json, request, search->lookup.name, version, false);
    }
    hub_version_release(version);
    search->lookup.version = NULL;
}

static void write_repo(struct request *request, struct search *search,
                       const struct repo_summary *repo)
{
    struct json *json = search->json;

    json_object_begin(json);
    hub_json_repo(json, zt_text_from(repo->name), repo->modified_ns);
    hub_json_tags(json, repo->tags);
    if (search->is_full)
        write_files(request, search);
    json_object_end(json);
}

/* As far as it gets: is_busy says whether it must be called again. */
static void write_page(struct request *request)
{
    struct search *search = request->context;
    const bool is_first = !search->is_made;

    if (!make_index(request, search))
        return;
    if (is_first)
        json_array_begin(search->json);
    for (; search->at < search->index.count; search->at++) {
        const struct repo_summary *repo = &search->index.repos[search->at];

        if (!is_behind(search, repo) || !is_wanted(search, repo))
            continue;
        if (search->count == search->limit)
            break;
        if (search->is_full && !find_version(request, search, repo))
            return;
        write_repo(request, search, repo);
        search->last = repo;
        search->count++;
    }
    json_array_end(search->json);
}

/* --- the answer --- */

static void add_cursor(struct href *href, const struct search *search)
{
    char cursor[CURSOR_SIZE];

    if (search->by_time)
        snprintf(cursor, sizeof(cursor), "%" PRId64 ":%s", search->last->modified_ns,
                 search->last->name);
    else
        snprintf(cursor, sizeof(cursor), "%s", search->last->name);
    href_segment(href, zt_text_from(cursor));
}

/* The page that follows: the same request with its cursor. */
static void add_next(struct request *request, const struct search *search)
{
    static const char *const kept[] = {"author", "search", "filter", "limit",
                                       "sort",   "full",   "expand", "expand[]"};
    const char *base = request_base_url(request);
    struct zt_text value;
    struct href href;

    if (base == NULL)
        return;
    href_init(&href);
    href_plain(&href, base);
    href_plain(&href, "/api/models?cursor=");
    add_cursor(&href, search);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        for (unsigned nth = 0; request_query(request, kept[i], nth, &value); nth++) {
            href_plain(&href, "&");
            href_segment(&href, zt_text_from(kept[i]));
            href_plain(&href, "=");
            if (value.length > 0)
                href_segment(&href, value);
        }
    }
    if (!href.failed)
        representation_field(&request->reply, "Link",
                             request_print(request, "<%s>; rel=\"next\"", href.text));
    href_free(&href);
    request->reply.vary = BASE_URL_VARY;
}

static enum outcome reply_page(struct request *request, const struct search *search)
{
    json_reply_send(request, search->json);
    if (!request->replied && search->at < search->index.count && search->last != NULL)
        add_next(request, search);
    if (!request->replied)
        request->reply.cache_control = "no-cache";
    return OUTCOME_READY;
}

enum outcome hub_list_get(struct request *request)
{
    struct search *search = request->context != NULL ? request->context : begin(request);

    if (search == NULL)
        return OUTCOME_READY;
    if (search->is_busy &&
        hub_repos_wait(request->server->hub, &search->lookup, request_waiter(request)))
        return OUTCOME_WAITING;
    if (!search->has_begun || search->is_busy) {
        search->has_begun = true;
        return request_work_long(request, write_page);
    }
    if (search->status != ZT_OK)
        return hub_reply_error(request, &search->error);
    return reply_page(request, search);
}
