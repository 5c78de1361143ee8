/* GET /files/…/: lists a folder in pages, as HTML for people and for programs that follow links, or
 * as JSON.
 *
 * References are relative, so that they also work with a proxy's prefix. A line of the HTML has the
 * form of other web servers' indices, which programs read (name, time, size). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/file_access.h"
#include "api/handlers.h"
#include "api/index_page.h"
#include "api/resolve.h"
#include "base/decimal.h"
#include "http/exchange/authorize.h"
#include "http/exchange/base_url.h"
#include "http/exchange/problem.h"
#include "http/fields/negotiate.h"
#include "http/fields/uri.h"
#include "http/revisions/revision.h"
#include "tree/tree_listing.h"
#include "zt/digest.h"

#define LIMIT_MAX 1000

struct index {
    struct index_page page;
    const char *folder; /* "": the root */
    struct zt_text after;
    size_t limit;
    enum zt_status status;
    struct zt_error error;
};

static void release_index(void *thing)
{
    index_page_free(&((struct index *)thing)->page);
}

/* --- on a worker --- */

static bool is_seen(const struct request *request, const char *folder,
                    const struct tree_entry *entry)
{
    char path[MODEL_PATH_SIZE];
    const int length =
        snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] == '\0' ? "" : "/", entry->path);

    assert(length > 0 && (size_t)length < sizeof(path));
    return entry->is_folder ? authorize_sees_folder(request, (struct zt_text){path, (size_t)length})
                            : client_may_read_file(request, (struct zt_text){path, (size_t)length});
}

static bool comes_after(const char *name, struct zt_text after)
{
    return zt_text_compare(zt_text_from(name), after) > 0;
}

/* A bucket can have a file and a folder of the same name. Both are on the same page. */
static void write_entries(const struct request *request, struct index *index,
                          const struct tree_listing *tree)
{
    const char *last = "";
    size_t count = 0;

    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_entry *entry = &tree->entries[i];

        if (!comes_after(entry->path, index->after) || !is_seen(request, tree->folder, entry))
            continue;
        if (count >= index->limit && strcmp(last, entry->path) != 0) {
            index_page_next(&index->page, last, index->limit);
            return;
        }
        index_page_add(&index->page, entry);
        last = entry->path;
        count++;
    }
}

static void list_on_worker(struct request *request)
{
    struct index *index = request->context;
    struct tree_listing *tree = NULL;

    index->status =
        tree_list(request->server, index->folder, false, index->page.is_json, &tree, &index->error);
    if (index->status != ZT_OK)
        return;
    index_page_begin(&index->page, index->folder);
    write_entries(request, index, tree);
    index_page_end(&index->page);
    tree_listing_release(tree);
}

/* --- the reply --- */

static enum outcome reply_failure(struct request *request, const struct index *index)
{
    switch (index->status) {
    case ZT_NOT_FOUND:
        return problem_reply(request, PROBLEM_NOT_FOUND, "there is no folder at this path");
    case ZT_LIMIT:
        return problem_reply(request, PROBLEM_NOT_REPRESENTABLE, "%s", index->error.message);
    default:
        return problem_reply_error(request, &index->error);
    }
}

/* The link is an absolute URL: some programs do not understand relative ones. */
static void add_link(struct request *request, const struct index *index)
{
    const char *base = request_base_url(request);
    struct href href;

    href_init(&href);
    href_plain(&href, "/files/");
    href_path(&href, zt_text_from(index->folder));
    href_plain(&href, index->folder[0] == '\0' ? "" : "/");
    if (base != NULL && !href.failed)
        representation_field(
            &request->reply, "Link",
            request_print(request, "<%s%s%s>; rel=\"next\"", base, href.text, index->page.next));
    request->reply.vary = "Accept, " BASE_URL_VARY;
    href_free(&href);
}

static enum outcome reply_index(struct request *request, struct index *index)
{
    struct representation *reply = &request->reply;
    struct zt_text text;
    uint64_t words[2];

    if (index->status != ZT_OK)
        return reply_failure(request, index);
    if (!index_page_text(&index->page, &text))
        return problem_reply_no_memory(request);
    zt_xxh3_128(text.bytes, text.length, words);
    reply->etag = request_print(request, "\"%016" PRIx64 "%016" PRIx64 "\"", words[0], words[1]);
    reply->media_type = index->page.is_json ? "application/json" : "text/html; charset=utf-8";
    reply->cache_control = "no-cache";
    reply->vary = "Accept";
    if (index->page.next != NULL)
        add_link(request, index);
    if (!index->page.is_json) {
        representation_field(reply, "X-Content-Type-Options", "nosniff");
        representation_field(reply, "Content-Security-Policy",
                             "default-src 'none'; base-uri 'none'; form-action 'none'; "
                             "frame-ancestors 'none'");
        representation_field(reply, "Referrer-Policy", "no-referrer");
    }
    representation_memory(reply, text.bytes, text.length);
    return OUTCOME_READY;
}

/* --- the request --- */

/* Browsers, and programs that accept anything, get HTML. */
static bool prefers_json(struct request *request)
{
    const char *accept = request_header(request, "Accept");
    unsigned json;

    if (accept == NULL)
        return false;
    json = negotiate_media_type(accept, "application/json", true);
    return json > 0 && json >= negotiate_media_type(accept, "text/html", true);
}

/* Returns false if it has replied. */
static bool read_limit(struct request *request, size_t *out_limit)
{
    struct zt_text text;
    uint64_t limit = LIMIT_MAX;

    if (request_query(request, "limit", 0, &text) &&
        (!zt_decimal_read(text, LIMIT_MAX, &limit) || limit == 0)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "limit must be a number from 1 to %d",
                      LIMIT_MAX);
        return false;
    }
    *out_limit = (size_t)limit;
    return true;
}

/* Returns true if the request is for a revision; it then has replied, or waits. */
static bool find_revision(struct request *request, enum outcome *out_outcome)
{
    struct zt_text revision;

    if (!request_query(request, "revision", 0, &revision))
        return false;
    *out_outcome = OUTCOME_READY;
    if (request->names[0].bytes == NULL)
        problem_reply(request, PROBLEM_REVISION_NOT_FOUND,
                      "the root has no revisions, only the repositories and models in it");
    else if (revision_resolve_path(request, REVISION_OF_FOLDER, out_outcome))
        *out_outcome = revision_redirect_to_folder(request, true);
    return true;
}

enum outcome files_index_get(struct request *request)
{
    const struct zt_text name =
        request->names[0].bytes != NULL ? request->names[0] : (struct zt_text){"", 0};
    struct index *index = request->context;
    enum outcome outcome;

    if (index != NULL)
        return reply_index(request, index);
    if (find_revision(request, &outcome))
        return outcome;
    if ((name.length > 0 && !store_path_is_served(name)) || !authorize_sees_folder(request, name))
        return problem_reply(request, PROBLEM_NOT_FOUND, "there is no folder at this path");
    index = request_allocate(request, sizeof(*index));
    if (index == NULL)
        return problem_reply_no_memory(request);
    *index = (struct index){.folder = request_copy(request, name.bytes, name.length)};
    if (index->folder == NULL)
        return problem_reply_no_memory(request);
    if (!read_limit(request, &index->limit))
        return OUTCOME_READY;
    if (!request_query(request, "after", 0, &index->after))
        index->after = (struct zt_text){"", 0};
    index->page.is_json = prefers_json(request);
    request->context = index;
    request_hold(request, index, release_index);
    return request_work_long(request, list_on_worker);
}
