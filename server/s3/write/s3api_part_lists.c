/* ListParts and ListMultipartUploads. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/s3api_error.h"
#include "s3/s3api_listing.h"
#include "s3/s3api_query.h"
#include "s3/s3api_request.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_multipart.h"
#include "upload/shared/write_checks.h"

static void add_terms(struct xml_writer *xml, const struct s3api_terms *terms)
{
    if (terms->algorithm[0] == '\0')
        return;
    xml_write_string(xml, "ChecksumAlgorithm", terms->algorithm);
    xml_write_string(xml, "ChecksumType", terms->is_full_object ? "FULL_OBJECT" : "COMPOSITE");
}

/* --- the parts of an upload --- */

static void add_part(struct xml_writer *xml, const struct s3api_part *part)
{
    char etag[S3API_PART_ETAG_SIZE];
    char element[S3API_ALGORITHM_SIZE + 8];

    s3api_part_etag(part, etag);
    xml_write_open(xml, "Part", NULL);
    xml_write_uint(xml, "PartNumber", part->number);
    s3api_xml_time(xml, "LastModified", part->modified);
    xml_write_string(xml, "ETag", etag);
    xml_write_uint(xml, "Size", part->length);
    if (part->checksum.algorithm[0] != '\0') {
        snprintf(element, sizeof(element), "Checksum%s", part->checksum.algorithm);
        xml_write_string(xml, element, part->checksum.value);
    }
    xml_write_close(xml, "Part");
}

/* The lock must be held. */
static void add_parts(struct xml_writer *xml, const struct s3api_upload *upload, uint32_t after,
                      size_t most)
{
    const struct s3api_parts *parts = &upload->parts;
    const size_t first = s3api_parts_seek(parts, after + 1);
    const size_t left = parts->count - first;
    const size_t count = left < most ? left : most;

    assert(first <= parts->count && most <= S3API_PAGE_MAX);
    xml_write_uint(xml, "PartNumberMarker", after);
    xml_write_uint(xml, "NextPartNumberMarker",
                   count > 0 ? parts->parts[first + count - 1].number : after);
    xml_write_uint(xml, "MaxParts", most);
    xml_write_bool(xml, "IsTruncated", count < left);
    for (size_t i = 0; i < count; i++)
        add_part(xml, &parts->parts[first + i]);
}

static enum outcome reply_parts(struct request *request, struct s3api_upload *upload,
                                uint32_t after, size_t most)
{
    static const char root[] = "ListPartsResult";
    struct xml_writer *xml = s3api_xml_new(request);

    if (xml == NULL)
        return OUTCOME_READY;
    s3api_xml_begin(xml, root);
    xml_write_string(xml, "Bucket", request->server->config->s3.bucket);
    xml_write_string(xml, "Key", upload->kept.entry.model);
    xml_write_string(xml, "UploadId", upload->kept.entry.id);
    s3api_xml_owner(xml, "Initiator");
    s3api_xml_owner(xml, "Owner");
    xml_write_string(xml, "StorageClass", "STANDARD");
    add_terms(xml, &upload->terms);
    pthread_mutex_lock(&upload->lock);
    add_parts(xml, upload, after, most);
    pthread_mutex_unlock(&upload->lock);
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

enum outcome s3api_list_parts(struct request *request)
{
    struct zt_text key;
    struct s3api_upload *upload;
    uint64_t after = 0;
    size_t most;

    if (!s3api_find_key(request, &key))
        return OUTCOME_READY;
    if (!authorize_sees_file(request, key))
        return s3api_problem(request, S3API_NO_SUCH_UPLOAD, "there is no such upload");
    upload = s3api_multipart_find(request, key);
    if (upload == NULL ||
        !s3api_query_number(request, "part-number-marker", 0, INT32_MAX, &after) ||
        !s3api_query_limit(request, "max-parts", &most))
        return OUTCOME_READY;
    if (s3api_upload_state(upload) == S3API_UPLOAD_PUBLISHED)
        return s3api_problem(request, S3API_NO_SUCH_UPLOAD, "this upload was completed");
    return reply_parts(request, upload, after < S3API_PARTS_MAX ? (uint32_t)after : S3API_PARTS_MAX,
                       most);
}

/* --- the uploads of the bucket --- */

struct listed {
    char *key;
    char id[UPLOAD_ID_SIZE];
    time_t created;
    struct s3api_terms terms; /* without metadata */
};

/* The state of a request. */
struct list {
    const struct request *request;
    bool is_url; /* keys are percent-encoded */
    struct zt_text key_marker;
    struct zt_text id_marker;
    struct s3api_page_query query;
    struct listed *uploads;
    size_t count;
    size_t capacity;
    size_t first; /* index after the upload of both markers */
    bool is_out_of_memory;
    struct s3api_page page;
};

static bool add_upload(struct list *list, const struct s3api_upload *upload)
{
    const struct registry_entry *entry = &upload->kept.entry;
    struct listed *listed;

    if (zt_array_reserve(&list->uploads, &list->capacity, list->count + 1, sizeof(*list->uploads),
                         SIZE_MAX) != ZT_OK)
        return false;
    assert(list->count < list->capacity);
    listed = &list->uploads[list->count];
    *listed = (struct listed){.key = strdup(entry->model), .created = entry->created};
    if (listed->key == NULL)
        return false;
    memcpy(listed->id, entry->id, sizeof(listed->id));
    listed->terms = upload->terms;
    listed->terms.metadata = NULL;
    list->count++;
    return true;
}

/* Collects the uploads that the client may see, and finds none. */
static bool collect(const void *context, const struct kept_upload *upload)
{
    struct list *list = *(struct list *const *)context;
    const struct zt_text key = zt_text_from(upload->entry.model);

    if (upload->entry.kind == UPLOAD_KIND_MULTIPART && !list->is_out_of_memory &&
        zt_text_starts_with(key, list->query.prefix) && authorize_sees_file(list->request, key) &&
        s3api_upload_state((const struct s3api_upload *)upload) == S3API_UPLOAD_OPEN)
        list->is_out_of_memory = !add_upload(list, (const struct s3api_upload *)upload);
    return false;
}

static int compare(const void *a, const void *b)
{
    const struct listed *one = a;
    const struct listed *other = b;
    const int by_key = strcmp(one->key, other->key);

    if (by_key != 0)
        return by_key;
    return one->created != other->created ? (one->created < other->created ? -1 : 1)
                                          : strcmp(one->id, other->id);
}

/* --- their page --- */

/* Returns the index after the upload that both markers name; 0: there is none. */
static size_t find_marked(const struct list *list)
{
    for (size_t i = 0; i < list->count && list->id_marker.length > 0; i++)
        if (zt_text_is(list->id_marker, list->uploads[i].id) &&
            zt_text_is(list->key_marker, list->uploads[i].key))
            return i + 1;
    return 0;
}

static const struct listed *upload_at(const struct list *list, size_t index)
{
    assert(index < list->count - list->first);
    return &list->uploads[list->first + index];
}

static struct zt_text key_at(void *context, size_t index)
{
    return zt_text_from(upload_at(context, index)->key);
}

static bool is_seen(void *context, size_t index)
{
    (void)context;
    (void)index;
    return true;
}

static void select_page(struct list *list)
{
    struct s3api_keys keys = {.key_at = key_at, .is_seen = is_seen, .context = list};

    if (list->count > 0)
        qsort(list->uploads, list->count, sizeof(list->uploads[0]), compare);
    list->first = find_marked(list);
    list->query.after = list->first == 0 ? list->key_marker : (struct zt_text){"", 0};
    keys.count = list->count - list->first;
    s3api_page_select(&keys, &list->query, &list->page);
    assert(list->page.count <= keys.count && list->page.count <= list->query.limit);
}

static void add_listed(struct xml_writer *xml, const struct listed *listed, bool is_url)
{
    xml_write_open(xml, "Upload", NULL);
    s3api_xml_key(xml, "Key", zt_text_from(listed->key), is_url);
    xml_write_string(xml, "UploadId", listed->id);
    s3api_xml_owner(xml, "Initiator");
    s3api_xml_owner(xml, "Owner");
    xml_write_string(xml, "StorageClass", "STANDARD");
    s3api_xml_time(xml, "Initiated", listed->created);
    add_terms(xml, &listed->terms);
    xml_write_close(xml, "Upload");
}

static void add_markers(struct xml_writer *xml, const struct list *list)
{
    const struct s3api_item *last;

    if (!list->page.is_truncated)
        return;
    assert(list->page.count > 0);
    last = &list->page.items[list->page.count - 1];
    s3api_xml_key(xml, "NextKeyMarker", last->key, list->is_url);
    if (!last->is_prefix)
        xml_write_string(xml, "NextUploadIdMarker", upload_at(list, last->index)->id);
}

static void add_page(struct xml_writer *xml, const struct list *list)
{
    const struct s3api_page *page = &list->page;

    assert(!page->is_truncated || page->count == list->query.limit);
    add_markers(xml, list);
    xml_write_bool(xml, "IsTruncated", page->is_truncated);
    for (size_t i = 0; i < page->count; i++)
        if (!page->items[i].is_prefix)
            add_listed(xml, upload_at(list, page->items[i].index), list->is_url);
    for (size_t i = 0; i < page->count; i++)
        if (page->items[i].is_prefix)
            s3api_xml_prefix(xml, page->items[i].key, list->is_url);
}

static enum outcome reply_uploads(struct request *request, const struct list *list)
{
    static const char root[] = "ListMultipartUploadsResult";
    struct xml_writer *xml = s3api_xml_new(request);

    if (xml == NULL)
        return OUTCOME_READY;
    s3api_xml_begin(xml, root);
    xml_write_string(xml, "Bucket", request->server->config->s3.bucket);
    s3api_xml_key(xml, "KeyMarker", list->key_marker, list->is_url);
    xml_write_text(xml, "UploadIdMarker", list->id_marker);
    s3api_xml_key(xml, "Prefix", list->query.prefix, list->is_url);
    if (list->query.delimiter.length > 0)
        s3api_xml_key(xml, "Delimiter", list->query.delimiter, list->is_url);
    if (list->is_url)
        xml_write_string(xml, "EncodingType", "url");
    xml_write_uint(xml, "MaxUploads", list->query.limit);
    add_page(xml, list);
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

static void free_uploads(void *thing)
{
    struct list *list = thing;

    for (size_t i = 0; i < list->count; i++)
        free(list->uploads[i].key);
    free(list->uploads);
}

/* Returns false if it has replied. */
static bool read_query(struct request *request, struct list *list)
{
    struct s3api_page_query *query = &list->query;
    bool has_key;
    bool is_there;

    return s3api_query_limit(request, "max-uploads", &query->limit) &&
           s3api_query_text(request, "delimiter", &is_there, &query->delimiter) &&
           s3api_query_text(request, "key-marker", &has_key, &list->key_marker) &&
           s3api_query_encoding(request, &list->is_url) &&
           (!has_key ||
            s3api_query_text(request, "upload-id-marker", &is_there, &list->id_marker)) &&
           s3api_query_text(request, "prefix", &is_there, &query->prefix);
}

enum outcome s3api_list_uploads(struct request *request)
{
    struct list *list;
    struct kept_upload *none;

    if (!s3api_finds_bucket(request))
        return OUTCOME_READY;
    list = request_new_context(request, sizeof(*list));
    if (list == NULL || !read_query(request, list))
        return OUTCOME_READY;
    request_hold(request, list, free_uploads);
    list->request = request;
    none = kept_uploads_search(request->server->kept, collect, &list);
    assert(none == NULL);
    (void)none;
    if (list->is_out_of_memory)
        return problem_reply_no_memory(request);
    select_page(list);
    return reply_uploads(request, list);
}
