/* ListParts and ListMultipartUploads. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/s3api_error.h"
#include "s3/s3api_query.h"
#include "s3/s3api_request.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_multipart.h"
#include "upload/shared/write_checks.h"

/* The most entries of one response. */
#define PAGE_MAX 1000

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
                      uint64_t most)
{
    const struct s3api_parts *parts = &upload->parts;
    const size_t first = s3api_parts_seek(parts, after + 1);
    const size_t left = parts->count - first;
    const size_t count = left < most ? left : (size_t)most;

    assert(first <= parts->count && most <= PAGE_MAX);
    xml_write_uint(xml, "PartNumberMarker", after);
    xml_write_uint(xml, "NextPartNumberMarker",
                   count > 0 ? parts->parts[first + count - 1].number : after);
    xml_write_uint(xml, "MaxParts", most);
    xml_write_bool(xml, "IsTruncated", count < left);
    for (size_t i = 0; i < count; i++)
        add_part(xml, &parts->parts[first + i]);
}

static enum outcome reply_parts(struct request *request, struct s3api_upload *upload,
                                uint32_t after, uint64_t most)
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
    uint64_t most = PAGE_MAX;

    if (!s3api_find_key(request, &key))
        return OUTCOME_READY;
    if (!authorize_sees_file(request, key))
        return s3api_problem(request, S3API_NO_SUCH_UPLOAD, "there is no such upload");
    upload = s3api_multipart_find(request, key);
    if (upload == NULL ||
        !s3api_query_number(request, "part-number-marker", 0, INT32_MAX, &after) ||
        !s3api_query_number(request, "max-parts", 0, INT32_MAX, &most))
        return OUTCOME_READY;
    if (s3api_upload_state(upload) == S3API_UPLOAD_PUBLISHED)
        return s3api_problem(request, S3API_NO_SUCH_UPLOAD, "this upload was completed");
    return reply_parts(request, upload, after < S3API_PARTS_MAX ? (uint32_t)after : S3API_PARTS_MAX,
                       most < PAGE_MAX ? most : PAGE_MAX);
}

/* --- the uploads of the bucket --- */

struct listed {
    char *key;
    char id[UPLOAD_ID_SIZE];
    time_t created;
    struct s3api_terms terms; /* without metadata */
};

struct collection {
    const struct request *request;
    struct zt_text prefix;
    struct listed *uploads;
    size_t count;
    size_t capacity;
    bool is_out_of_memory;
};

static bool add_upload(struct collection *collection, const struct s3api_upload *upload)
{
    const struct registry_entry *entry = &upload->kept.entry;
    struct listed *listed;

    if (zt_array_reserve(&collection->uploads, &collection->capacity, collection->count + 1,
                         sizeof(*collection->uploads), SIZE_MAX) != ZT_OK)
        return false;
    assert(collection->count < collection->capacity);
    listed = &collection->uploads[collection->count];
    *listed = (struct listed){.key = strdup(entry->model), .created = entry->created};
    if (listed->key == NULL)
        return false;
    memcpy(listed->id, entry->id, sizeof(listed->id));
    listed->terms = upload->terms;
    listed->terms.metadata = NULL;
    collection->count++;
    return true;
}

/* Collects the uploads that the client may see, and finds none. */
static bool collect(const void *context, const struct kept_upload *upload)
{
    struct collection *collection = *(struct collection *const *)context;
    const struct zt_text key = zt_text_from(upload->entry.model);

    if (upload->entry.kind == UPLOAD_KIND_MULTIPART && !collection->is_out_of_memory &&
        zt_text_starts_with(key, collection->prefix) &&
        authorize_sees_file(collection->request, key) &&
        s3api_upload_state((const struct s3api_upload *)upload) == S3API_UPLOAD_OPEN)
        collection->is_out_of_memory = !add_upload(collection, (const struct s3api_upload *)upload);
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

struct page {
    struct zt_text delimiter;
    struct zt_text key_marker;
    struct zt_text id_marker;
    uint64_t most;
    bool is_url;
};

/* What a page has so far: uploads, then common prefixes, which are collected meanwhile. */
struct listing {
    struct xml_writer *xml;
    struct xml_writer prefixes;
    struct zt_text last_prefix;
    const struct listed *last; /* NULL: none */
    uint64_t count;
    bool is_truncated;
};

/* Returns the index of the first upload after the markers. */
static size_t seek(const struct collection *collection, const struct page *page)
{
    size_t first = 0;

    while (page->key_marker.length > 0 && first < collection->count) {
        const struct listed *listed = &collection->uploads[first];
        const int order = strcmp(listed->key, page->key_marker.bytes);

        if (order > 0)
            break;
        first++;
        if (order == 0 && page->id_marker.length > 0 && zt_text_is(page->id_marker, listed->id))
            break;
    }
    return first;
}

/* Returns the common prefix that is listed instead of a key; empty: none. */
static struct zt_text common_prefix(const struct collection *collection, const struct page *page,
                                    const struct listed *listed)
{
    const char *rest = listed->key + collection->prefix.length;
    const char *found =
        page->delimiter.length > 0
            ? memmem(rest, strlen(rest), page->delimiter.bytes, page->delimiter.length)
            : NULL;

    if (found == NULL)
        return (struct zt_text){NULL, 0};
    return (struct zt_text){listed->key, (size_t)(found - listed->key) + page->delimiter.length};
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

static void add_prefix(struct listing *listing, struct zt_text prefix, bool is_url)
{
    xml_write_open(&listing->prefixes, "CommonPrefixes", NULL);
    s3api_xml_key(&listing->prefixes, "Prefix", prefix, is_url);
    xml_write_close(&listing->prefixes, "CommonPrefixes");
}

/* Returns false if the page is full. */
static bool add_item(struct listing *listing, const struct collection *collection,
                     const struct page *page, const struct listed *listed)
{
    const struct zt_text prefix = common_prefix(collection, page, listed);

    if (prefix.length > 0 &&
        (zt_text_equal(prefix, listing->last_prefix) || zt_text_equal(prefix, page->key_marker)))
        return true;
    assert(listing->count <= page->most && !listing->is_truncated);
    listing->is_truncated = listing->count == page->most;
    if (listing->is_truncated)
        return false;
    if (prefix.length > 0)
        add_prefix(listing, prefix, page->is_url);
    else
        add_listed(listing->xml, listed, page->is_url);
    listing->last_prefix = prefix;
    listing->last = listed;
    listing->count++;
    return true;
}

static void add_markers(const struct listing *listing, const struct page *page)
{
    const struct zt_text prefix = listing->last_prefix;

    if (!listing->is_truncated || listing->last == NULL)
        return;
    s3api_xml_key(listing->xml, "NextKeyMarker",
                  prefix.length > 0 ? prefix : zt_text_from(listing->last->key), page->is_url);
    if (prefix.length == 0)
        xml_write_string(listing->xml, "NextUploadIdMarker", listing->last->id);
}

static void append(struct xml_writer *xml, const struct xml_writer *more)
{
    xml->text.failed = xml->text.failed || more->text.failed;
    if (!more->text.failed)
        zt_buffer_append(&xml->text, more->text.bytes, more->text.length);
}

static void write_page(struct xml_writer *xml, const struct collection *collection,
                       const struct page *page)
{
    struct listing listing = {.xml = xml};

    assert(page->most <= PAGE_MAX);

    for (size_t i = seek(collection, page); i < collection->count; i++)
        if (!add_item(&listing, collection, page, &collection->uploads[i]))
            break;
    add_markers(&listing, page);
    xml_write_bool(xml, "IsTruncated", listing.is_truncated && page->most > 0);
    append(xml, &listing.prefixes);
    xml_writer_free(&listing.prefixes);
}

static enum outcome reply_uploads(struct request *request, const struct collection *collection,
                                  const struct page *page)
{
    static const char root[] = "ListMultipartUploadsResult";
    struct xml_writer *xml = s3api_xml_new(request);

    if (xml == NULL)
        return OUTCOME_READY;
    s3api_xml_begin(xml, root);
    xml_write_string(xml, "Bucket", request->server->config->s3.bucket);
    s3api_xml_key(xml, "KeyMarker", page->key_marker, page->is_url);
    xml_write_text(xml, "UploadIdMarker", page->id_marker);
    s3api_xml_key(xml, "Prefix", collection->prefix, page->is_url);
    if (page->delimiter.length > 0)
        s3api_xml_key(xml, "Delimiter", page->delimiter, page->is_url);
    if (page->is_url)
        xml_write_string(xml, "EncodingType", "url");
    xml_write_uint(xml, "MaxUploads", page->most);
    write_page(xml, collection, page);
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

static void free_collection(void *thing)
{
    struct collection *collection = thing;

    for (size_t i = 0; i < collection->count; i++)
        free(collection->uploads[i].key);
    free(collection->uploads);
}

/* Returns false if it has replied. */
static bool read_page(struct request *request, struct page *page)
{
    bool has_key;
    bool is_there;

    page->most = PAGE_MAX;
    if (!s3api_query_number(request, "max-uploads", 0, INT32_MAX, &page->most) ||
        !s3api_query_text(request, "delimiter", &is_there, &page->delimiter) ||
        !s3api_query_text(request, "key-marker", &has_key, &page->key_marker) ||
        !s3api_query_encoding(request, &page->is_url))
        return false;
    page->most = page->most < PAGE_MAX ? page->most : PAGE_MAX;
    if (has_key && !s3api_query_text(request, "upload-id-marker", &is_there, &page->id_marker))
        return false;
    /* Compared with strcmp. */
    page->key_marker.bytes = request_copy(request, page->key_marker.bytes, page->key_marker.length);
    if (page->key_marker.bytes == NULL)
        problem_reply_no_memory(request);
    return page->key_marker.bytes != NULL;
}

enum outcome s3api_list_uploads(struct request *request)
{
    struct collection *collection;
    struct kept_upload *none;
    struct page page = {.most = 0};
    bool is_there;

    if (!s3api_finds_bucket(request) || !read_page(request, &page))
        return OUTCOME_READY;
    collection = request_new_context(request, sizeof(*collection));
    if (collection == NULL)
        return OUTCOME_READY;
    request_hold(request, collection, free_collection);
    collection->request = request;
    if (!s3api_query_text(request, "prefix", &is_there, &collection->prefix))
        return OUTCOME_READY;
    none = kept_uploads_search(request->server->kept, collect, &collection);
    assert(none == NULL);
    (void)none;
    if (collection->is_out_of_memory)
        return problem_reply_no_memory(request);
    if (collection->count > 0)
        qsort(collection->uploads, collection->count, sizeof(collection->uploads[0]), compare);
    return reply_uploads(request, collection, &page);
}
