/* GET /v1/models: a page of models sorted by name, with a cursor for the next page. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/json_reply.h"
#include "api/parameters.h"
#include "api/resolve.h"
#include "base/glob.h"
#include "catalog/catalog.h"
#include "derived/manifest_json.h"
#include "http/exchange/authorize.h"
#include "http/fields/uri.h"
#include "zt/digest.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     1000

/* So many files are looked at on the loop, and at a time while lookups are kept from changing the
 * index. A page that needs more, since the client may see few of many models, is continued on a
 * worker. */
#define LOOKS_AT_ONCE 2048
/* The same where names are compared with globs, which can be made expensive. */
#define MATCHES_AT_ONCE 64

struct page {
    struct catalog *catalog;
    struct catalog_page wanted;
    struct catalog_page_end end;
    size_t limit;
    size_t count;
    struct generation *models[]; /* limit */
};

/* --- the cursor: the last name of the previous page in base64url without padding (RFC 4648 section
 * 5) --- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
#define CURSOR_SIZE (MODEL_NAME_MAX * 4 / 3 + 4)

static void cursor_write(struct zt_text name, char out_text[CURSOR_SIZE])
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t length = 0;

    for (size_t i = 0; i < name.length; i++) {
        bits = bits << 8 | (unsigned char)name.bytes[i];
        for (count += 8; count >= 6; count -= 6)
            out_text[length++] = alphabet[bits >> (count - 6) & 63];
    }
    if (count > 0)
        out_text[length++] = alphabet[bits << (6 - count) & 63];
    assert(name.length <= MODEL_NAME_MAX && length < CURSOR_SIZE);
    out_text[length] = '\0';
}

/* False for a text that cursor_write cannot have made. */
static bool cursor_read(struct zt_text text, char out_name[MODEL_NAME_MAX], size_t *out_length)
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t length = 0;

    for (size_t i = 0; i < text.length; i++) {
        const char *digit = text.bytes[i] != '\0' ? strchr(alphabet, text.bytes[i]) : NULL;

        if (digit == NULL)
            return false;
        bits = bits << 6 | (uint32_t)(digit - alphabet);
        count += 6;
        if (count >= 8) {
            count -= 8;
            if (length == MODEL_NAME_MAX)
                return false;
            out_name[length++] = (char)(bits >> count & 0xFF);
        }
    }
    *out_length = length;
    return count < 6 && (bits & ((1U << count) - 1)) == 0 &&
           model_name_is_valid((struct zt_text){out_name, length});
}

/* --- the query; false: replied --- */

static bool read_limit(struct request *request, size_t *out_limit)
{
    struct zt_text text;
    size_t limit;

    *out_limit = LIMIT_DEFAULT;
    if (!request_query(request, "limit", 0, &text))
        return true;
    if (!parameter_once(request, "limit"))
        return false;
    limit = 0;
    for (size_t i = 0; i < text.length && limit <= LIMIT_MAX; i++) {
        limit = text.bytes[i] >= '0' && text.bytes[i] <= '9'
                    ? limit * 10 + (size_t)(text.bytes[i] - '0')
                    : LIMIT_MAX + 1;
    }
    if (limit < 1 || limit > LIMIT_MAX) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "limit must be a number from 1 to %d",
                      LIMIT_MAX);
        return false;
    }
    *out_limit = limit;
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
    json_key_string(json, "error");
    json_object_begin(json);
    json_key_string(json, "code");
    json_put_string(json, problem_code(problem_of_unreadable(generation)));
    json_key_string(json, "detail");
    json_put_string(json, generation->error->message);
    json_object_end(json);
}

static void write_counts(struct json *json, const struct generation *generation)
{
    json_key_string(json, "version");
    if (generation->model != NULL)
        json_text(json, generation->model->version);
    else
        json_put_null(json);
    json_key_string(json, "size");
    json_uint(json, generation_size(generation));
    json_key_string(json, "objects");
    if (generation->model != NULL)
        json_uint(json, generation->model->object_count);
    else
        json_put_null(json);
}

static void write_part_of(struct json *json, const struct page *page,
                          const struct generation *generation)
{
    char name[MODEL_NAME_MAX + 1];

    if (!catalog_part_of(page->catalog, generation->path, page->wanted.filter, name))
        return;
    json_key_string(json, "part_of");
    json_put_string(json, name);
}

static void write_model(struct json *json, const struct page *page,
                        const struct generation *generation, struct href *href)
{
    json_object_begin(json);
    json_key_string(json, "name");
    json_text(json, generation_name(generation));
    json_key_string(json, "format");
    json_put_string(json, generation_format(generation));
    write_counts(json, generation);
    json_key_string(json, "modified");
    manifest_write_time(json, generation->is_joined ? generation_modified_ns(generation)
                                                    : generation->identity.modified_ns);
    json_key_string(json, "etag");
    json_put_string(json, generation->etag);
    href_cut(href, 0);
    href_plain(href, generation->base_path);
    href_model(href, generation_name(generation));
    json_key_string(json, "href");
    json_put_string(json, href->failed ? "" : href->text);
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
    json_key_string(json, "models");
    json_array_begin(json);
    for (size_t i = 0; i < page->count; i++)
        write_model(json, page, page->models[i], &href);
    json_array_end(json);
    json_key_string(json, "next");
    if (page->end.more && page->count > 0) {
        char cursor[CURSOR_SIZE];

        cursor_write(generation_name(page->models[page->count - 1]), cursor);
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
    const char *etag;        /* of the uncoded text; NULL if out of memory */
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

/* Lists on from where the page ended. */
static void list_step(struct page *page)
{
    struct generation *before = page->end.reached;

    if (before != NULL)
        page->wanted.after = generation_name(before);
    page->wanted.limit = page->limit - page->count;
    page->count +=
        catalog_list(page->catalog, &page->wanted, page->models + page->count, &page->end);
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

/* False: replied. */
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

/* NULL: replied. */
static struct listing *begin(struct request *request)
{
    bool pretty;
    bool parts;
    struct catalog_page wanted = {.looks = LOOKS_AT_ONCE};
    struct listing *listing = request_allocate(request, sizeof(*listing));

    if (listing == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    *listing = (struct listing){.etag = NULL};
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
