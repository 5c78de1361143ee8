/* Searches for repositories. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/json_reply.h"
#include "base/decimal.h"
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
/* Maximum number of repositories that are listed with their files. */
#define FULL_MAX 100
/* Room for a cursor by time: "-9223372036854775808:", and a name. */
#define CURSOR_SIZE (HUB_REPO_SIZE + 24)

struct search {
    struct zt_text author;
    struct zt_text text;
    /* The last entry of the previous page; it may have been deleted since. */
    bool has_after;
    int64_t after_ns; /* when sorted by time */
    char after[CURSOR_SIZE];
    unsigned wanted_tags; /* a bit mask of the first hub_tag_at with that name */
    bool is_impossible;   /* no repository passes a filter */
    size_t limit;
    bool by_time;
    bool is_full; /* with commits and files */
    bool has_begun;
    bool is_made; /* the index exists */
    enum zt_status status;
    struct repo_index index;
    struct zt_error error;
    /* The page, written on the worker. */
    struct json *json; /* held by the request */
    size_t at;         /* in the index */
    size_t count;
    const struct repo_summary *last; /* that was written */
    struct hub_lookup lookup;        /* for the repository at `at`, if is_full */
    bool is_busy;                    /* another request is listing it */
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

/* Reads a cursor: a name, or "NS:NAME" when sorted by time. With any other text the list starts
 * from the beginning. */
static void read_cursor(struct request *request, struct search *search)
{
    struct zt_text text;
    const char *colon;

    if (!request_query(request, "cursor", 0, &text) || text.length == 0 ||
        text.length >= sizeof(search->after))
        return;
    memcpy(search->after, text.bytes, text.length);
    search->has_after = true;
    if (!search->by_time)
        return;
    colon = strchrnul(search->after, ':');
    search->has_after =
        *colon == ':' &&
        zt_decimal_read_signed((struct zt_text){search->after, (size_t)(colon - search->after)},
                               &search->after_ns);
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

static void want_tag(struct search *search, struct zt_text tag)
{
    unsigned i = 0;

    while (hub_tag_at(i) != NULL && !zt_text_is(tag, hub_tag_at(i)))
        i++;
    if (hub_tag_at(i) != NULL)
        search->wanted_tags |= 1U << i;
    else
        search->is_impossible |= tag.length > 0;
}

/* filter=a&filter=b and filter=a,b both mean repositories that have all tags. */
static void want_tags(struct search *search, struct zt_text text)
{
    while (text.length > 0) {
        const char *comma = memchr(text.bytes, ',', text.length);
        const size_t length = comma != NULL ? (size_t)(comma - text.bytes) : text.length;
        const size_t used = length + (comma != NULL);

        want_tag(search, (struct zt_text){text.bytes, length});
        text = (struct zt_text){text.bytes + used, text.length - used};
    }
}

/* Handles a property that no repository here has. */
static void want_flag(struct search *search, struct zt_text text)
{
    search->is_impossible |= text.length > 0 && !hub_text_is_false(text);
}

/* Handles a fact that is unknown for all repositories here. */
static void want_fact(struct search *search, struct zt_text text)
{
    search->is_impossible |= text.length > 0;
}

/* Reads the Hub's filters. Ignoring one would return repositories that the client did not ask
 * for. */
static void read_filters(struct request *request, struct search *search)
{
    static const struct {
        const char *name;
        void (*want)(struct search *search, struct zt_text text);
    } filters[] = {
        {"filter", want_tags},
        {"filter[]", want_tags},
        {"tags", want_tags},
        {"other", want_tags},
        {"library", want_tags},
        {"gated", want_flag},
        {"private", want_flag},
        {"disabled", want_flag},
        {"pipeline_tag", want_fact},
        {"task", want_fact},
        {"apps", want_fact},
        {"apps[]", want_fact},
        {"inference", want_fact},
        {"inference_provider", want_fact},
        {"inference_provider[]", want_fact},
        {"num_parameters", want_fact},
        {"trained_dataset", want_fact},
        {"dataset", want_fact},
        {"language", want_fact},
        {"license", want_fact},
        {"region", want_fact},
        {"base_model", want_fact},
        {"model_type", want_fact},
        {"emissions", want_fact},
        {"emissions_thresholds", want_fact},
        {"carbon_emissions", want_fact},
    };
    struct zt_text text;

    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        for (unsigned nth = 0; request_query(request, filters[i].name, nth, &text); nth++)
            filters[i].want(search, text);
}

/* Returns NULL if it has replied. */
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

/* --- matching --- */

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

static bool has_tag(const struct repo_summary *repo, const char *tag)
{
    for (unsigned i = 0; hub_tag_at(i) != NULL; i++)
        if ((repo->tags >> i & 1) != 0 && strcmp(tag, hub_tag_at(i)) == 0)
            return true;
    return false;
}

static bool is_wanted(const struct search *search, const struct repo_summary *repo)
{
    if (!has_author(repo->name, search->author) || !has_text(repo->name, search->text))
        return false;
    for (unsigned i = 0; hub_tag_at(i) != NULL; i++)
        if ((search->wanted_tags >> i & 1) != 0 && !has_tag(repo, hub_tag_at(i)))
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

/* Returns true if it comes after the last entry of the previous page. */
static bool comes_after(const struct search *search, const struct repo_summary *repo)
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

/* Looks the repository up. Returns false if another request is listing it. */
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

/* If a repository cannot be listed now, only the other members are written. */
static void write_files(struct request *request, struct search *search)
{
    struct hub_version *version = search->lookup.version;

    if (search->lookup.found == HUB_FOUND) {
        json_string_member(search->json, "sha", version->commit);
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

/* Writes as much as possible. If is_busy is set, it must be called again. */
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

        if (!comes_after(search, repo) || !is_wanted(search, repo))
            continue;
        assert(search->count <= search->limit);
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

/* --- the response --- */

static void add_cursor(struct href *href, const struct search *search)
{
    char cursor[CURSOR_SIZE];

    assert(search->last != NULL);
    if (search->by_time)
        snprintf(cursor, sizeof(cursor), "%" PRId64 ":%s", search->last->modified_ns,
                 search->last->name);
    else
        snprintf(cursor, sizeof(cursor), "%s", search->last->name);
    href_segment(href, zt_text_from(cursor));
}

/* Links to the next page: the same request with its cursor. */
static void add_next(struct request *request, const struct search *search)
{
    /* Parameters that may appear in the link. With any other filter, the list is empty, or the
     * filter has no effect. */
    static const char *const kept[] = {"author", "search", "filter",  "filter[]",
                                       "tags",   "other",  "library", "limit",
                                       "sort",   "full",   "expand",  "expand[]"};
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

static enum outcome reply_empty_list(struct request *request, struct search *search)
{
    json_array_begin(search->json);
    json_array_end(search->json);
    return reply_page(request, search);
}

enum outcome hub_list_get(struct request *request)
{
    struct search *search = request->context != NULL ? request->context : begin(request);

    if (search == NULL)
        return OUTCOME_READY;
    if (search->is_impossible)
        return reply_empty_list(request, search);
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
