/* Lists keys (ListObjectsV2), page by page.
 *
 * XML cannot represent every key: Ceph writes U+0001 as "&#x01;", which parsers reject. Such a page
 * is requested again with encoding-type=url. Engines differ in that encoding ('+' may be a space)
 * and in how they treat continuation tokens with it. From there on, each page therefore begins
 * after the last key of the previous page. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/memory.h"
#include "input/xml_mend.h"
#include "input/xml_read.h"
#include "store/s3/bucket.h"
#include "store/s3/percent.h"

#define PAGE_KEYS "1000"
#define FIRST_KEY "1"
/* The last Unicode character. */
#define LAST_CHARACTER "\xf4\x8f\xbf\xbf"
/* Enough for 1,000 keys of 1,024 bytes, each byte written as a reference of six characters. */
#define PAGE_BYTES_MOST ((size_t)16 << 20)
/* Stops a list that never ends. 20 million keys are more than one server keeps in memory. */
#define PAGES_MAX  20000
#define TOKEN_SIZE 4096
#define QUERY_SIZE (3 * (TOKEN_SIZE + 2 * BUCKET_KEY_SIZE) + 160)

/* More digits than any real size has, and few enough not to overflow. */
#define SIZE_DIGITS_MAX 18

/* --- one page --- */

struct page_object {
    size_t key; /* index of its first byte in keys */
    size_t key_length;
    char etag[BUCKET_ETAG_SIZE];
    uint64_t size_bytes;
    int64_t modified_s;
    bool is_folder; /* a common prefix of several keys */
    bool has_key;
    bool has_etag;
    bool has_size;
};

struct page {
    struct page_object *objects;
    size_t count;
    size_t capacity;
    char *keys; /* each followed by NUL */
    size_t keys_length;
    size_t keys_capacity;
    struct page_object next; /* the object being parsed */
    const char *last;        /* the last key, usable or not; NULL: none */
    bool is_last_exact;      /* false: last is only correct up to its end or a '?' */
    char token[TOKEN_SIZE];
    bool is_list;
    bool is_truncated;
    bool is_encoded;
    bool out_of_memory;
};

static void page_clear(struct page *page)
{
    free(page->objects);
    free(page->keys);
    *page = (struct page){.objects = NULL};
}

static bool take_key(struct page *page, struct zt_text text)
{
    if (text.length > 3 * (size_t)BUCKET_KEY_SIZE)
        return true;
    if (zt_array_reserve(&page->keys, &page->keys_capacity, page->keys_length + text.length + 1, 1,
                         SIZE_MAX) != ZT_OK)
        return false;
    page->next.key = page->keys_length;
    page->next.key_length = text.length;
    page->next.has_key = true;
    if (text.length > 0)
        memcpy(page->keys + page->keys_length, text.bytes, text.length);
    page->keys_length += text.length;
    page->keys[page->keys_length++] = '\0';
    return true;
}

static bool take_object(struct page *page)
{
    const struct page_object *next = &page->next;

    if (next->has_key) {
        if (zt_array_reserve(&page->objects, &page->capacity, page->count + 1, sizeof(*next),
                             SIZE_MAX) != ZT_OK)
            return false;
        page->objects[page->count++] = *next;
    }
    page->next = (struct page_object){.has_key = false};
    return true;
}

static bool take_folder(struct page *page, struct zt_text text)
{
    page->next = (struct page_object){.is_folder = true};
    return take_key(page, text) && take_object(page);
}

static bool read_size(struct zt_text text, uint64_t *out_size)
{
    return text.length <= SIZE_DIGITS_MAX && zt_decimal_read(text, UINT64_MAX, out_size);
}

static void take_token(struct page *page, struct zt_text text)
{
    if (text.length >= sizeof(page->token))
        return;
    memcpy(page->token, text.bytes, text.length);
    page->token[text.length] = '\0';
}

static bool take(void *context, const char *path, struct zt_text text)
{
    static const char root[] = "ListBucketResult";
    struct page *page = context;
    bool taken = true;

    if (strncmp(path, root, sizeof(root) - 1) != 0)
        return true;
    path += sizeof(root) - 1;
    page->is_list = page->is_list || path[0] == '\0' || path[0] == '/';
    if (strcmp(path, "/Contents") == 0)
        taken = take_object(page);
    else if (text.bytes == NULL)
        return true;
    else if (strcmp(path, "/Contents/Key") == 0)
        taken = take_key(page, text);
    else if (strcmp(path, "/CommonPrefixes/Prefix") == 0)
        taken = take_folder(page, text);
    else if (strcmp(path, "/Contents/ETag") == 0)
        page->next.has_etag = bucket_etag_read(text, page->next.etag);
    else if (strcmp(path, "/Contents/Size") == 0)
        page->next.has_size = read_size(text, &page->next.size_bytes);
    else if (strcmp(path, "/Contents/LastModified") == 0)
        (void)bucket_time_of_list(text, &page->next.modified_s);
    else if (strcmp(path, "/IsTruncated") == 0)
        page->is_truncated = zt_text_is(text, "true");
    else if (strcmp(path, "/NextContinuationToken") == 0)
        take_token(page, text);
    else if (strcmp(path, "/EncodingType") == 0)
        page->is_encoded = zt_text_is(text, "url");
    page->out_of_memory = !taken;
    return taken;
}

/* Decodes the page's keys, and drops unreadable ones. */
static void drop_unusable(struct page *page, bool was_mended)
{
    size_t used = 0;

    for (size_t i = 0; i < page->count; i++) {
        struct page_object *object = &page->objects[i];
        char *key = page->keys + object->key;
        bool is_exact = true;

        if (page->is_encoded)
            is_exact = percent_decode_key(key, &object->key_length);
        else if (was_mended)
            is_exact = strchr(key, '?') == NULL;
        if (was_mended && strchr(object->etag, '?') != NULL)
            object->has_etag = false;
        page->last = key;
        page->is_last_exact = is_exact && object->key_length < BUCKET_KEY_SIZE;
        if (page->is_last_exact)
            page->objects[used++] = *object;
    }
    page->count = used;
}

/* Sorts the page: the service sends keys in order, followed by the common prefixes. */
static void sort(struct page *page)
{
    for (size_t i = 1; i < page->count; i++) {
        const struct page_object object = page->objects[i];
        size_t at = i;

        for (;
             at > 0 && strcmp(page->keys + page->objects[at - 1].key, page->keys + object.key) > 0;
             at--)
            page->objects[at] = page->objects[at - 1];
        page->objects[at] = object;
    }
    if (page->count > 0 && page->is_last_exact)
        page->last = page->keys + page->objects[page->count - 1].key;
}

/* --- the walk through the pages --- */

struct walk {
    struct bucket *bucket;
    char path[BUCKET_PATH_SIZE];
    char prefix[2 * BUCKET_KEY_SIZE];
    char query[QUERY_SIZE];
    bool as_url;
    bool is_level; /* lists one level only */
    struct bucket_patience patience;
    char token[TOKEN_SIZE]; /* for the next page; empty: it begins after `after` */
    char after[BUCKET_KEY_SIZE +
               sizeof(LAST_CHARACTER)]; /* the last key that was listed, with the bucket's prefix */
    struct page page;
    struct remote_exchange exchange;
};

static bool append_pair(struct walk *walk, size_t *used, const char *name, const char *value)
{
    return percent_append_plain(walk->query, QUERY_SIZE, used, *used > 0 ? "&" : "") &&
           percent_append_plain(walk->query, QUERY_SIZE, used, name) &&
           percent_append_plain(walk->query, QUERY_SIZE, used, "=") &&
           percent_append(walk->query, QUERY_SIZE, used, zt_text_from(value), false);
}

/* Writes the parameters sorted by name, as the signature requires. */
static bool make_query(struct walk *walk, const char *keys)
{
    size_t used = 0;

    return (walk->token[0] == '\0' ||
            append_pair(walk, &used, "continuation-token", walk->token)) &&
           (!walk->is_level || append_pair(walk, &used, "delimiter", "/")) &&
           (!walk->as_url || append_pair(walk, &used, "encoding-type", "url")) &&
           append_pair(walk, &used, "list-type", "2") &&
           append_pair(walk, &used, "max-keys", keys) &&
           append_pair(walk, &used, "prefix", walk->prefix) &&
           (walk->token[0] != '\0' || walk->after[0] == '\0' ||
            append_pair(walk, &used, "start-after", walk->after));
}

static struct walk *walk_new(struct bucket *bucket, const char *beginning, struct zt_error *error)
{
    struct walk *walk = calloc(1, sizeof(*walk));

    assert(strlen(beginning) < BUCKET_KEY_SIZE);
    if (walk == NULL) {
        (void)zt_fail_memory(error, "a list of the store");
        return NULL;
    }
    walk->bucket = bucket;
    (void)bucket_own_path(bucket, walk->path);
    snprintf(walk->prefix, sizeof(walk->prefix), "%s%s", bucket->prefix, beginning);
    return walk;
}

static void walk_free(struct walk *walk)
{
    if (walk == NULL)
        return;
    page_clear(&walk->page);
    free(walk);
}

static enum zt_status ask(struct walk *walk, const char *keys, struct zt_error *error)
{
    struct remote_exchange *exchange = &walk->exchange;

    assert(exchange->query == NULL);
    if (!make_query(walk, keys))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "a key of the list is too long");
    exchange->query = walk->query;
    exchange->body_most = PAGE_BYTES_MOST;
    exchange->try_ms = walk->patience.try_ms;
    exchange->tries = walk->patience.tries;
    return bucket_run(walk->bucket, METRIC_STORE_LIST, exchange, walk->patience.by_ms, error);
}

static enum zt_status not_a_list(struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "the store's list cannot be read: it is not XML, or not a list");
}

static bool parse(struct walk *walk, struct zt_error *error)
{
    struct remote_exchange *exchange = &walk->exchange;

    page_clear(&walk->page);
    if (exchange->answer == NULL)
        return false;
    return xml_read((struct zt_text){exchange->answer, exchange->answer_length}, take, &walk->page,
                    error) == ZT_OK &&
           walk->page.is_list;
}

/* Parses the response into the page. *out_again: the page must be requested with the other
 * encoding. */
static enum zt_status read_page(struct walk *walk, bool *out_again, struct zt_error *error)
{
    struct remote_exchange *exchange = &walk->exchange;
    bool is_read = parse(walk, error);
    bool was_mended = false;

    *out_again = false;
    if (!is_read && !walk->page.out_of_memory && walk->as_url && exchange->answer != NULL) {
        exchange->answer_length = xml_mend(exchange->answer, exchange->answer_length);
        was_mended = true;
        is_read = parse(walk, error);
        /* A '?' may be a replaced character, so the token cannot be trusted. */
        if (is_read && strchr(walk->page.token, '?') != NULL)
            walk->page.token[0] = '\0';
    }
    if (walk->page.out_of_memory)
        return zt_fail_memory(error, "a list of the store");
    if (!is_read) {
        *out_again = !walk->as_url;
        return *out_again ? ZT_OK : not_a_list(error);
    }
    drop_unusable(&walk->page, was_mended);
    if (walk->is_level)
        sort(&walk->page);
    return ZT_OK;
}

/* Requests a page and parses it. The response stays in the exchange, which the caller frees. If
 * *out_again is set (see read_page), the walk is ready to request the same page again. */
static enum zt_status get_page(struct walk *walk, const char *keys, bool *out_again,
                               struct zt_error *error)
{
    enum zt_status status;

    *out_again = false;
    bucket_exchange(walk->bucket, &walk->exchange, "GET", walk->path);
    status = ask(walk, keys, error);
    if (status == ZT_OK)
        status = read_page(walk, out_again, error);
    if (*out_again) {
        walk->as_url = true;
        /* It is unknown whether a token from one encoding is valid in the other. */
        if (walk->after[0] != '\0')
            walk->token[0] = '\0';
    }
    return status;
}

/* Continues after a page without a usable key. If the last key is readable, continues after it.
 * Otherwise continues after its readable part plus a character that no model's name has, moving
 * forward as little as possible. */
static bool step_over(struct walk *walk)
{
    static const char *const beyond[] = {"", " ", "%" LAST_CHARACTER, "?" LAST_CHARACTER,
                                         LAST_CHARACTER};
    const struct page *page = &walk->page;
    const size_t count = page->is_last_exact ? 1 : sizeof(beyond) / sizeof(beyond[0]);
    size_t length;

    if (page->last == NULL)
        return false;
    length = page->is_last_exact ? strlen(page->last) : strcspn(page->last, "?");
    for (size_t i = page->is_last_exact ? 0 : 1; i < count; i++) {
        char after[BUCKET_KEY_SIZE];

        if (length + strlen(beyond[i]) >= sizeof(after))
            return false;
        memcpy(after, page->last, length);
        strcpy(after + length, beyond[i]);
        if (strcmp(after, walk->after) <= 0)
            continue;
        walk->token[0] = '\0';
        strcpy(walk->after, after);
        return true;
    }
    return false;
}

/* Writes the last key of a page, or, for a folder, a text that sorts after all its keys. Writes an
 * empty text if the page has none. */
static void tell_last(const struct page *page,
                      char out_last[BUCKET_KEY_SIZE + sizeof(LAST_CHARACTER)])
{
    const struct page_object *last = page->count > 0 ? &page->objects[page->count - 1] : NULL;

    snprintf(out_last, BUCKET_KEY_SIZE + sizeof(LAST_CHARACTER), "%s%s",
             last != NULL ? page->keys + last->key : "",
             last != NULL && last->is_folder ? LAST_CHARACTER : "");
}

/* Decides where the next page begins. Returns false if the list makes no progress. */
static bool step(struct walk *walk)
{
    const struct page *page = &walk->page;
    char last[BUCKET_KEY_SIZE + sizeof(LAST_CHARACTER)];

    assert(page->is_list && page->is_truncated);
    tell_last(page, last);
    if (walk->as_url || page->token[0] == '\0') {
        const bool moves = strcmp(last, walk->after) > 0;

        if (moves) {
            walk->token[0] = '\0';
            strcpy(walk->after, last);
            return true;
        }
        if (page->token[0] == '\0')
            return step_over(walk);
    }
    if (strcmp(walk->token, page->token) == 0)
        return false;
    strcpy(walk->token, page->token);
    if (last[0] != '\0')
        strcpy(walk->after, last);
    return true;
}

/* Returns true if an object that may be a model, or may have been one before, has no ETag or size.
 * Without an ETag, later requests could not ask for exactly this version. */
static bool has_unreadable_entry(const struct page *page, size_t skipped)
{
    size_t length;
    unsigned rank;

    for (size_t i = 0; i < page->count; i++) {
        const struct page_object *object = &page->objects[i];

        if (!object->is_folder && (!object->has_etag || !object->has_size) &&
            object->key_length > skipped &&
            model_path_split(page->keys + object->key + skipped, &length, &rank))
            return true;
    }
    return false;
}

typedef bool object_visitor(void *context, const struct listed_object *object);

/* Returns false if the visitor stops the list. */
static bool visit_page(const struct walk *walk, object_visitor *visit, void *context)
{
    const size_t skipped = strlen(walk->bucket->prefix);
    const size_t wanted = strlen(walk->prefix);

    assert(walk->page.is_list);
    for (size_t i = 0; i < walk->page.count; i++) {
        const struct page_object *object = &walk->page.objects[i];
        const char *key = walk->page.keys + object->key;
        const bool is_whole = object->is_folder || (object->has_etag && object->has_size);
        const struct listed_object listed = {key + skipped, object->is_folder ? NULL : object->etag,
                                             object->size_bytes, object->modified_s};

        if (strncmp(key, walk->prefix, wanted) == 0 && key[skipped] != '\0' && is_whole &&
            !visit(context, &listed))
            return false;
    }
    return true;
}

/* Reads all pages, and frees the walk. */
static enum zt_status walk_pages(struct walk *walk, object_visitor *visit, void *context,
                                 struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    unsigned pages = 0;
    bool more = true;

    while (status == ZT_OK && more) {
        bool again;

        status = get_page(walk, PAGE_KEYS, &again, error);
        remote_exchange_free(&walk->exchange);
        if (status != ZT_OK)
            break;
        if (again)
            continue;
        if (has_unreadable_entry(&walk->page, strlen(walk->bucket->prefix)))
            status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                             "an entry of the store's list cannot be read");
        more = status == ZT_OK && visit_page(walk, visit, context) && walk->page.is_truncated;
        if (more && (!step(walk) || ++pages == PAGES_MAX))
            status =
                zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the store's list does not end");
    }
    walk_free(walk);
    return status;
}

static enum zt_status walk_begin(struct bucket *bucket, const char *beginning, int64_t by_ms,
                                 struct walk **out_walk, struct zt_error *error)
{
    struct walk *walk = NULL;

    if (strlen(beginning) >= BUCKET_KEY_SIZE)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
    walk = walk_new(bucket, beginning, error);
    if (walk == NULL)
        return ZT_NO_MEMORY;
    walk->patience.by_ms = by_ms;
    *out_walk = walk;
    return ZT_OK;
}

enum zt_status bucket_list(struct bucket *bucket, const char *beginning, int64_t by_ms,
                           object_visitor *visit, void *context, struct zt_error *error)
{
    struct walk *walk = NULL;
    const enum zt_status status = walk_begin(bucket, beginning, by_ms, &walk, error);

    return status == ZT_OK ? walk_pages(walk, visit, context, error) : status;
}

enum zt_status bucket_list_level(struct bucket *bucket, const char *beginning, int64_t by_ms,
                                 object_visitor *visit, void *context, struct zt_error *error)
{
    struct walk *walk = NULL;
    const enum zt_status status = walk_begin(bucket, beginning, by_ms, &walk, error);

    if (status != ZT_OK)
        return status;
    walk->is_level = true;
    return walk_pages(walk, visit, context, error);
}

enum zt_status bucket_list_first(struct bucket *bucket, const struct bucket_patience *patience,
                                 struct remote_exchange *out_exchange, struct zt_error *error)
{
    struct walk *walk = walk_new(bucket, "", error);
    enum zt_status status;
    bool again;

    remote_exchange_init(out_exchange);
    if (walk == NULL)
        return ZT_NO_MEMORY;
    walk->patience = *patience;
    status = get_page(walk, FIRST_KEY, &again, error);
    if (status == ZT_OK && again) {
        remote_exchange_free(&walk->exchange);
        status = get_page(walk, FIRST_KEY, &again, error);
    }
    *out_exchange = walk->exchange;
    /* These belong to the walk. */
    out_exchange->path = NULL;
    out_exchange->query = NULL;
    walk_free(walk);
    return status;
}
