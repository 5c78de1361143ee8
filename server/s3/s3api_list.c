/* ListObjects, versions 1 and 2. A list with the delimiter "/" reads one folder; all others read
 * everything below the prefix (s3api_key_list.h). */
#include <assert.h>
#include <string.h>

#include "api/file_access.h"
#include "api/resolve.h"
#include "api/stored_reply.h"
#include "http/exchange/authorize.h"
#include "http/exchange/s3api_error.h"
#include "s3/handlers.h"
#include "s3/s3api_key_list.h"
#include "s3/s3api_listing.h"
#include "s3/s3api_query.h"
#include "s3/s3api_request.h"
#include "s3/s3api_view_list.h"
#include "s3/s3api_xml.h"

/* The state of a request. */
struct list {
    bool is_second; /* version 2 of the API */
    bool is_url;    /* names are percent-encoded */
    bool has_owner;
    bool has_start; /* start-after was sent */
    bool has_token;
    struct zt_text start; /* start-after or marker */
    struct zt_text token;
    struct s3api_page_query query;
    struct s3api_key_lookup lookup;
    struct s3api_view_list views;
    bool has_failed;     /* out of memory */
    bool is_unavailable; /* the store could not say what is in a folder */
    struct xml_writer *xml;
    struct s3api_page page;
};

static void release(void *thing)
{
    struct list *list = thing;

    s3api_view_list_free(&list->views);
    s3api_key_lookup_end(&list->lookup);
}

/* --- what the client may see --- */

struct finding {
    const struct request *request;
    bool is_found;
};

static bool stop_at_seen(void *context, const char *path, const struct file_identity *identity)
{
    struct finding *finding = context;

    finding->is_found =
        identity != NULL && client_may_read_file(finding->request, zt_text_from(path));
    return !finding->is_found;
}

/* Returns true if there is a file below the folder that the client may see; otherwise no key has
 * the common prefix. In a bucket folders exist only with keys, and each check is a request, so
 * folders are only checked for clients that may not see everything. */
static bool sees_in_folder(const struct request *request, const struct s3api_key *folder)
{
    struct list *list = request->context;
    struct store *store = request->server->store;
    struct finding finding = {request, false};
    char path[MODEL_PATH_SIZE];

    assert(folder->length > 1 && folder->length <= sizeof(path));
    memcpy(path, folder->text, folder->length - 1);
    path[folder->length - 1] = '\0';
    if (!authorize_sees_folder(request, zt_text_from(path)))
        return false;
    if (store_may_wait(store) && authorize_filter(request).passes == NULL)
        return true;
    if (store->ops->walk(store, path, true, stop_at_seen, &finding, &list->lookup.error) ==
        ZT_UNAVAILABLE)
        list->is_unavailable = true;
    return finding.is_found;
}

static const struct s3api_key *find_stored(const struct request *request, size_t index)
{
    const struct list *list = request->context;

    assert(index < list->lookup.list->count);
    return &list->lookup.list->keys[index];
}

/* The stored keys. */

static struct zt_text stored_at(void *context, size_t index)
{
    const struct s3api_key *key = find_stored(context, index);

    return (struct zt_text){key->text, key->length};
}

static bool is_stored_seen(void *context, size_t index)
{
    const struct s3api_key *key = find_stored(context, index);

    return key->is_folder ? sees_in_folder(context, key)
                          : client_may_read_file(context, (struct zt_text){key->text, key->length});
}

/* The stored keys and the views. */

static const struct s3api_view_key *find_view(const struct request *request, size_t index,
                                              size_t *out_stored)
{
    return s3api_view_list_at(&((const struct list *)request->context)->views, index, out_stored);
}

static struct zt_text key_at(void *context, size_t index)
{
    size_t stored;
    const struct s3api_view_key *view = find_view(context, index, &stored);

    return view != NULL ? (struct zt_text){view->text, view->length} : stored_at(context, stored);
}

static bool is_seen(void *context, size_t index)
{
    size_t stored;

    return find_view(context, index, &stored) != NULL || is_stored_seen(context, stored);
}

/* --- the document --- */

/* What a list says about a key. */
struct facts {
    struct zt_text key;
    int64_t modified_ns;
    uint64_t size_bytes;
    char etag[S3API_ETAG_SIZE];
};

static struct facts facts_of(const struct request *request, size_t index)
{
    size_t stored;
    const struct s3api_view_key *view = find_view(request, index, &stored);
    const struct s3api_key *key;
    struct facts facts;

    if (view != NULL) {
        facts = (struct facts){.key = {view->text, view->length},
                               .modified_ns = view->view->identity.modified_ns,
                               .size_bytes = s3api_view_length(view->view, view->part)};
        s3api_view_etag(view->view, view->part, facts.etag);
        return facts;
    }
    key = find_stored(request, stored);
    assert(!key->is_folder);
    facts = (struct facts){.key = {key->text, key->length},
                           .modified_ns = key->identity.modified_ns,
                           .size_bytes = key->identity.size_bytes};
    s3api_etag(key->text, &key->identity, facts.etag);
    return facts;
}

static void write_key(struct list *list, const struct facts *facts)
{
    struct xml_writer *xml = list->xml;

    xml_write_open(xml, "Contents", NULL);
    s3api_xml_key(xml, "Key", facts->key, list->is_url);
    s3api_xml_time(xml, "LastModified", stored_modified(facts->modified_ns));
    xml_write_string(xml, "ETag", facts->etag);
    xml_write_uint(xml, "Size", facts->size_bytes);
    xml_write_string(xml, "StorageClass", "STANDARD");
    if (list->has_owner)
        s3api_xml_owner(list->xml, "Owner");
    xml_write_close(xml, "Contents");
}

/* Writes where the next page begins. In version 1, clients continue after the last key if there is
 * no delimiter. */
static void write_next(const struct list *list)
{
    char token[S3API_TOKEN_SIZE(MODEL_PATH_SIZE)];
    struct zt_text last;

    if (!list->page.is_truncated)
        return;
    assert(list->page.count > 0);
    last = list->page.items[list->page.count - 1].key;
    if (list->is_second) {
        assert(last.length <= MODEL_PATH_SIZE);
        s3api_token_write(last, token);
        xml_write_string(list->xml, "NextContinuationToken", token);
    } else if (list->query.delimiter.length > 0) {
        s3api_xml_key(list->xml, "NextMarker", last, list->is_url);
    }
}

/* Writes the elements that repeat the request. SDKs decode the prefix only in version 2. */
static void write_query(const struct list *list, const char *bucket)
{
    struct xml_writer *xml = list->xml;

    xml_write_string(xml, "Name", bucket);
    s3api_xml_key(xml, "Prefix", list->query.prefix, list->is_second && list->is_url);
    if (!list->is_second)
        s3api_xml_key(xml, "Marker", list->start, list->is_url);
    if (list->is_second && list->has_start)
        s3api_xml_key(xml, "StartAfter", list->start, list->is_url);
    if (list->is_second && list->has_token)
        xml_write_text(xml, "ContinuationToken", list->token);
    if (list->query.delimiter.length > 0)
        s3api_xml_key(xml, "Delimiter", list->query.delimiter, list->is_url);
    xml_write_uint(xml, "MaxKeys", list->query.limit);
    if (list->is_url)
        xml_write_string(xml, "EncodingType", "url");
    if (list->is_second)
        xml_write_uint(xml, "KeyCount", list->page.count);
}

static void write_document(struct request *request, struct list *list)
{
    s3api_xml_begin(list->xml, "ListBucketResult");
    write_query(list, request->server->config->s3.bucket);
    write_next(list);
    xml_write_bool(list->xml, "IsTruncated", list->page.is_truncated);
    for (size_t i = 0; i < list->page.count; i++)
        if (!list->page.items[i].is_prefix) {
            const struct facts facts = facts_of(request, list->page.items[i].index);

            write_key(list, &facts);
        }
    for (size_t i = 0; i < list->page.count; i++)
        if (list->page.items[i].is_prefix)
            s3api_xml_prefix(list->xml, list->page.items[i].key, list->is_url);
    xml_write_close(list->xml, "ListBucketResult");
}

/* Selects the page of the stored keys, and again with the views that belong to it. */
static bool select_page(struct request *request, struct list *list)
{
    struct s3api_keys keys = {.count = list->lookup.list->count,
                              .key_at = stored_at,
                              .is_seen = is_stored_seen,
                              .context = request};

    assert(request->context == list && list->views.count == 0);
    s3api_page_select(&keys, &list->query, &list->page);
    if (s3api_view_list_make(request->server, list->lookup.list, &keys, &list->query, &list->page,
                             &list->views) != ZT_OK)
        return false;
    if (list->views.count == 0)
        return true;
    keys = (struct s3api_keys){.count = s3api_view_list_count(&list->views),
                               .key_at = key_at,
                               .is_seen = is_seen,
                               .context = request};
    s3api_page_select(&keys, &list->query, &list->page);
    return true;
}

static void list_on_worker(struct request *request)
{
    struct list *list = request->context;

    if (!s3api_key_lookup_run(request->server, &list->lookup))
        return;
    list->has_failed = !select_page(request, list);
    if (!list->has_failed && !list->is_unavailable)
        write_document(request, list);
    s3api_view_list_free(&list->views);
    s3api_key_lookup_end(&list->lookup);
}

/* --- the query --- */

/* Finds where the page begins. Returns false if it has replied. */
static bool read_start(struct request *request, struct list *list)
{
    struct s3api_page_query *query = &list->query;
    char *key;

    if (!s3api_query_text(request, list->is_second ? "start-after" : "marker", &list->has_start,
                          &list->start) ||
        (list->is_second &&
         !s3api_query_text(request, "continuation-token", &list->has_token, &list->token)))
        return false;
    query->after = list->start;
    if (list->token.length == 0)
        return true;
    key = request_allocate(request, list->token.length);
    if (key == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    query->after.bytes = key;
    if (s3api_token_read(list->token, key, list->token.length, &query->after.length))
        return true;
    s3api_problem(request, S3API_INVALID_ARGUMENT, "the continuation token is not valid");
    return false;
}

/* Returns false if it has replied. */
static bool read_query(struct request *request, struct list *list)
{
    struct zt_text text;
    bool is_there;

    assert(list->query.prefix.length == 0 && list->query.limit == 0);
    if (!s3api_query_text(request, "list-type", &is_there, &text))
        return false;
    list->is_second = zt_text_is(text, "2");
    if (!s3api_query_text(request, "fetch-owner", &is_there, &text))
        return false;
    list->has_owner = list->is_second && zt_text_is(text, "true");
    return s3api_query_text(request, "prefix", &is_there, &list->query.prefix) &&
           s3api_query_text(request, "delimiter", &is_there, &list->query.delimiter) &&
           s3api_query_limit(request, "max-keys", &list->query.limit) &&
           s3api_query_encoding(request, &list->is_url) && read_start(request, list);
}

/* --- the request --- */

static enum outcome reply_failure(struct request *request, const struct list *list)
{
    const struct zt_error *error = &list->lookup.error;

    switch (error->status) {
    case ZT_LIMIT:
        return s3api_problem(request, S3API_INVALID_REQUEST, "%s; list with a delimiter",
                             error->message);
    default:
        return problem_reply_error(request, error);
    }
}

/* Returns the prefix to look up. In a folder that the client may not see it sees no key, and no
 * upstream may be asked for it: not even whether it exists. */
static struct zt_text find_prefix(const struct request *request, struct zt_text prefix)
{
    static const struct zt_text of_no_key = {"//", 2};
    const char *slash = prefix.length > 0 ? memrchr(prefix.bytes, '/', prefix.length) : NULL;
    const struct zt_text folder = {prefix.bytes,
                                   slash != NULL ? (size_t)(slash - prefix.bytes) : 0};

    return folder.length == 0 || authorize_sees_folder(request, folder) ? prefix : of_no_key;
}

/* Returns NULL if it has replied. */
static struct list *begin(struct request *request)
{
    struct list *list;

    if (!s3api_finds_bucket(request))
        return NULL;
    list = request_new_context(request, sizeof(*list));
    if (list == NULL)
        return NULL;
    list->xml = s3api_xml_new(request);
    if (list->xml == NULL || !read_query(request, list))
        return NULL;
    s3api_key_lookup_begin(request->server, find_prefix(request, list->query.prefix),
                           zt_text_is(list->query.delimiter, "/"), list->query.after.length > 0,
                           &list->lookup);
    request_hold(request, list, release);
    return list;
}

enum outcome s3api_list_objects(struct request *request)
{
    struct list *list = request->context;

    if (list == NULL) {
        list = begin(request);
        return list != NULL ? request_work_long(request, list_on_worker) : OUTCOME_READY;
    }
    if (list->lookup.is_busy)
        return s3api_key_lookup_wait(&list->lookup, request_waiter(request))
                   ? OUTCOME_WAITING
                   : request_work_long(request, list_on_worker);
    if (list->has_failed)
        return problem_reply_no_memory(request);
    if (list->xml->text.length == 0 && !list->xml->text.failed)
        return reply_failure(request, list);
    return s3api_xml_reply(request, 200, list->xml);
}
