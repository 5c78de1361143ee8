/* The repositories that a request searches for. */
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
#include "hub/repo_index.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX     10000
#define FILTERS_MAX   8

struct search {
    struct zt_text author;
    struct zt_text text;
    struct zt_text after; /* the name that the page before ended with */
    struct zt_text filters[FILTERS_MAX];
    unsigned filter_count;
    size_t limit;
    bool by_time;
    bool is_done;
    enum zt_status status;
    struct repo_index index;
    struct zt_error error;
};

static void free_search(void *thing)
{
    repo_index_free(&((struct search *)thing)->index);
}

static bool sees(const void *request, struct zt_text path)
{
    return authorize_sees_file(request, path);
}

static void make_index(struct request *request)
{
    struct search *search = request->context;

    search->status = repo_index_make(request->server->store, (struct name_filter){sees, request},
                                     &search->index, &search->error);
}

/* --- the query --- */

static size_t read_limit(struct request *request)
{
    struct zt_text text;
    size_t limit = 0;

    if (!request_query(request, "limit", 0, &text) || text.length == 0)
        return LIMIT_DEFAULT;
    for (size_t i = 0; i < text.length && limit <= LIMIT_MAX; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return LIMIT_DEFAULT;
        limit = limit * 10 + (size_t)(text.bytes[i] - '0');
    }
    return limit < 1 ? 1 : limit > LIMIT_MAX ? LIMIT_MAX : limit;
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
    (void)request_query(request, "cursor", 0, &search->after);
    search->limit = read_limit(request);
    search->by_time = request_query(request, "sort", 0, &sort) &&
                      (zt_text_is(sort, "lastModified") || zt_text_is(sort, "last_modified") ||
                       zt_text_is(sort, "createdAt"));
    read_filters(request, search);
    return search;
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

/* --- the answer --- */

static void write_repo(struct json *json, const struct repo_summary *repo)
{
    json_object_begin(json);
    hub_json_repo(json, zt_text_from(repo->name), repo->modified_ns);
    hub_json_tags(json, repo->tags);
    json_object_end(json);
}

/* The page that follows the name: the same request with its cursor. */
static void add_next(struct request *request, const char *name)
{
    static const char *const kept[] = {"author", "search", "filter", "limit", "sort"};
    const char *base = request_base_url(request);
    struct zt_text value;
    struct href href;

    if (base == NULL)
        return;
    href_init(&href);
    href_plain(&href, base);
    href_plain(&href, "/api/models?cursor=");
    href_segment(&href, zt_text_from(name));
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        for (unsigned nth = 0; request_query(request, kept[i], nth, &value); nth++) {
            href_plain(&href, "&");
            href_plain(&href, kept[i]);
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

static enum outcome reply_found(struct request *request, struct search *search)
{
    struct json *json = json_reply_new(request, false);
    const struct repo_index *index = &search->index;
    const char *last = NULL;
    bool is_behind = search->after.length == 0;
    size_t count = 0;
    size_t at;

    if (json == NULL)
        return OUTCOME_READY;
    if (search->by_time && index->count > 0)
        qsort(index->repos, index->count, sizeof(*index->repos), compare_times);
    json_array_begin(json);
    for (at = 0; at < index->count; at++) {
        const struct repo_summary *repo = &index->repos[at];

        if (!is_behind) {
            is_behind = zt_text_is(search->after, repo->name);
            continue;
        }
        if (!is_wanted(search, repo))
            continue;
        if (count == search->limit)
            break;
        write_repo(json, repo);
        last = repo->name;
        count++;
    }
    json_array_end(json);
    json_reply_send(request, json);
    if (!request->replied && at < index->count && last != NULL)
        add_next(request, last);
    if (!request->replied)
        request->reply.cache_control = "no-cache";
    return OUTCOME_READY;
}

enum outcome hub_list_get(struct request *request)
{
    struct search *search = request->context != NULL ? request->context : begin(request);

    if (search == NULL)
        return OUTCOME_READY;
    if (!search->is_done) {
        search->is_done = true;
        return request_work_long(request, make_index);
    }
    if (search->status != ZT_OK)
        return hub_reply_error(request, &search->error);
    return reply_found(request, search);
}
