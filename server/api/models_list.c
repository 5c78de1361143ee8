/* GET /v1/models: a page of models sorted by name, with a cursor for the next page. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "api/handlers.h"
#include "api/json_reply.h"
#include "api/parameters.h"
#include "api/resolve.h"
#include "base/base64.h"
#include "base/decimal.h"
#include "base/glob.h"
#include "catalog/catalog.h"
#include "derived/manifest_json.h"
#include "http/exchange/authorize.h"
#include "http/fields/uri.h"
#include "zt/digest.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     1000

/* The number of files examined on the loop, and the number examined while lookups may not change
 * the index. If a page needs more, because the client may see few of many models, a worker
 * continues it. */
#define LOOKS_AT_ONCE 2048
/* The limit if names are compared with globs, which can be made expensive. */
#define MATCHES_AT_ONCE 64

struct page {
    struct catalog *catalog;
    struct catalog_page wanted;
    struct catalog_page_end end;
    size_t limit;
    size_t count;
    struct generation *models[]; /* limit */
};

/* --- the cursor: the last name of the previous page in base64url --- */

#define CURSOR_SIZE ZT_BASE64_SIZE(MODEL_NAME_MAX)

/* Returns false for a text that is not a name in base64url. */
static bool cursor_read(struct zt_text text, char out_name[MODEL_NAME_MAX], size_t *out_length)
{
    return zt_base64_read(text, ZT_BASE64_URL, out_name, MODEL_NAME_MAX, out_length) &&
           model_name_is_valid((struct zt_text){out_name, *out_length});
}

/* --- the query; false: replied --- */

static bool read_limit(struct request *request, size_t *out_limit)
{
    struct zt_text text;
    uint64_t limit;

    *out_limit = LIMIT_DEFAULT;
    if (!request_query(request, "limit", 0, &text))
        return true;
    if (!parameter_once(request, "limit"))
        return false;
    if (!zt_decimal_read(text, LIMIT_MAX, &limit) || limit == 0) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "limit must be a number from 1 to %d",
                      LIMIT_MAX);
        return false;
    }
    *out_limit = (size_t)limit;
    return true;
}

static bool read_cursor(struct request *request, struct zt_text *out_after)
{
    struct zt_text text;
    char *name;
    size_t length;

    *out_after = (struct zt_text){"", 0};
    if (!request_query(request, "cursor", 0, &text))
        return true;
    if (!parameter_once(request, "cursor"))
        return false;
    name = request_allocate(request, MODEL_NAME_MAX);
    if (name == NULL || !cursor_read(text, name, &length)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "cursor must be the \"next\" of a listing");
        return false;
    }
    *out_after = (struct zt_text){name, length};
    return true;
}

/* --- the answer --- */

static void write_error(struct json *json, const struct generation *generation)
{
    json_object_member(json, "error");
    json_string_member(json, "code", problem_code(problem_of_unreadable(generation)));
    json_string_member(json, "detail", generation->error->message);
    json_object_end(json);
}

static void write_counts(struct json *json, const struct generation *generation)
{
    json_key_string(json, "version");
    if (generation->model != NULL)
        json_text(json, generation->model->version);
    else
        json_put_null(json);
    json_uint_member(json, "size", generation_size(generation));
    json_key_string(json, "objects");
    if (generation->model != NULL)
        json_uint(json, generation->model->object_count);
    else
        json_put_null(json);
    json_key_string(json, "parameters");
    if (generation->has_parameters)
        json_uint(json, generation->parameters);
    else
        json_put_null(json);
}

static void write_part_of(struct json *json, const struct page *page,
                          const struct generation *generation)
{
    char name[MODEL_NAME_MAX + 1];

    if (!catalog_part_of(page->catalog, generation->path, page->wanted.filter, name))
        return;
    json_string_member(json, "part_of", name);
}

static void write_model(struct json *json, const struct page *page,
                        const struct generation *generation, struct href *href)
{
    json_object_begin(json);
    json_key_string(json, "name");
    json_text(json, generation_name(generation));
    json_string_member(json, "format", generation_format(generation));
    write_counts(json, generation);
    json_key_string(json, "modified");
    manifest_write_time(json, generation->is_joined ? generation_modified_ns(generation)
                                                    : generation->identity.modified_ns);
    json_string_member(json, "etag", generation->etag);
    href_cut(href, 0);
    href_plain(href, generation->base_path);
    href_model(href, generation_name(generation));
    json_string_member(json, "href", href->failed ? "" : href->text);
    write_part_of(json, page, generation);
    if (generation->model == NULL)
        write_error(json, generation);
    json_object_end(json);
}

static void write_page(struct json *json, const struct page *page)
{
    struct href href;

    assert(page->count <= page->limit && page->limit <= LIMIT_MAX);
    assert(page->end.reached == NULL);
    href_init(&href);
    json_object_begin(json);
    json_array_member(json, "models");
    for (size_t i = 0; i < page->count; i++)
        write_model(json, page, page->models[i], &href);
    json_array_end(json);
    json_key_string(json, "next");
    if (page->end.more && page->count > 0) {
        char cursor[CURSOR_SIZE];

        const struct zt_text last = generation_name(page->models[page->count - 1]);

        zt_base64_write(cursor, last.bytes, last.length, ZT_BASE64_URL);
        json_put_string(json, cursor);
    } else {
        json_put_null(json);
    }
    json_object_end(json);
    json->failed = json->failed || href.failed;
    href_free(&href);
}

struct listing {
    struct json_reply reply; /* first */
    struct page *page;       /* NULL once the text is complete and only waits to be compressed */
    const char *etag;        /* ETag of the uncoded text; NULL if out of memory */
};

static const char *make_etag(struct request *request, const struct json *json)
{
    uint64_t words[2];

    zt_xxh3_128(json->text, json->length, words);
    return request_print(request, "\"%016" PRIx64 "%016" PRIx64 "\"", words[0], words[1]);
}

/* --- the page --- */

static void clear_page(void *thing)
{
    struct page *page = thing;

    for (size_t i = 0; i < page->count; i++)
        generation_release(page->models[i]);
    page->count = 0;
    generation_release(page->end.reached);
    page->end.reached = NULL;
}

/* Continues the list where the page ended. */
static void list_step(struct page *page)
{
    struct generation *before = page->end.reached;

    if (before != NULL)
        page->wanted.after = generation_name(before);
    page->wanted.limit = page->limit - page->count;
    page->count +=
        catalog_list(page->catalog, &page->wanted, page->models + page->count, &page->end);
    assert(page->count <= page->limit);
    generation_release(before);
}

/* On a worker. */
static void list_rest(struct request *request)
{
    struct page *page = ((struct listing *)request->context)->page;

    while (page->end.reached != NULL)
        list_step(page);
}

static bool matches(const void *globs, struct zt_text name)
{
    return glob_set_matches(globs, name);
}

static void free_globs(void *globs)
{
    glob_set_free(globs);
}

/* Returns false if it has replied. */
static bool read_matches(struct request *request, struct catalog_page *wanted)
{
    struct zt_text *globs;
    struct glob_set *set;
    size_t count;

    if (!parameter_matches(request, &globs, &count))
        return false;
    if (count == 0)
        return true;
    set = glob_set_new(globs, count);
    if (set == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    request_hold(request, set, free_globs);
    wanted->match = (struct name_filter){matches, set};
    wanted->looks = MATCHES_AT_ONCE;
    return true;
}

static struct page *page_new(struct request *request, const struct catalog_page *wanted)
{
    struct page *page =
        request_allocate(request, sizeof(*page) + wanted->limit * sizeof(page->models[0]));

    if (page == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    *page = (struct page){
        .catalog = request->server->catalog, .wanted = *wanted, .limit = wanted->limit};
    request_hold(request, page, clear_page);
    return page;
}

/* Returns NULL if it has replied. */
static struct listing *begin(struct request *request)
{
    bool pretty;
    bool parts;
    struct catalog_page wanted = {.looks = LOOKS_AT_ONCE};
    struct listing *listing = request_new_memory(request, sizeof(*listing));

    if (listing == NULL)
        return NULL;
    if (!read_limit(request, &wanted.limit) || !read_cursor(request, &wanted.after) ||
        !parameter_prefix(request, &wanted.prefix) ||
        !parameter_switch(request, "pretty", &pretty) ||
        !parameter_switch_off(request, "parts", &parts) || !read_matches(request, &wanted) ||
        !json_reply_negotiate(request, &listing->reply))
        return NULL;
    listing->reply.json = json_reply_new(request, pretty);
    if (listing->reply.json == NULL)
        return NULL;
    wanted.without_parts = !parts;
    wanted.filter = authorize_filter(request);
    listing->page = page_new(request, &wanted);
    if (listing->page == NULL)
        return NULL;
    list_step(listing->page);
    return listing;
}

static void write_listing(struct request *request, struct listing *listing)
{
    struct json *json = listing->reply.json;

    write_page(json, listing->page);
    clear_page(listing->page);
    listing->page = NULL;
    listing->etag = json->failed ? NULL : make_etag(request, json);
}

enum outcome models_list(struct request *request)
{
    struct listing *listing = request->context != NULL ? request->context : begin(request);

    request->context = listing;
    if (listing == NULL)
        return OUTCOME_READY;
    if (listing->page != NULL && listing->page->end.reached != NULL)
        return request_work_long(request, list_rest);
    if (listing->page != NULL)
        write_listing(request, listing);
    if (json_reply_encode(request, &listing->reply) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    json_reply_send(request, listing->reply.json);
    if (!listing->reply.json->failed && listing->etag != NULL) {
        request->reply.etag = json_reply_etag(request, &listing->reply, listing->etag);
        request->reply.cache_control = "no-cache";
    }
    return OUTCOME_READY;
}
