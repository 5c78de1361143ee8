/* Aborts multipart uploads whose beginning got no response. Their ids are found in the list of
 * uploads, which does not show who began them. So an upload is aborted only if it cannot be in use:
 * it has the same key, began no earlier than ours, and is still empty long afterwards. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "input/xml_mend.h"
#include "input/xml_read.h"
#include "store/s3/percent.h"
#include "store/s3_write/s3_multipart.h"

/* A key never has many uploads. If there are more, the bucket's lifecycle rule removes them. */
#define UPLOADS_MOST 100
#define UPLOADS_TEXT "100"
#define ID_MOST      1024
#define QUERY_SIZE   (3 * (ID_MOST + BUCKET_KEY_SIZE + S3_KEY_SIZE) + 64)
/* Maximum size of one page of the list. */
#define PAGE_MOST  ((size_t)1 << 20)
#define REQUEST_MS 10000
/* Allows for clocks that run at different rates, and for times in whole seconds. */
#define SLACK_S 10

static int64_t by_now(void)
{
    return clock_ms() + REQUEST_MS;
}

/* --- the list --- */

struct found {
    char key[BUCKET_KEY_SIZE + S3_KEY_SIZE]; /* the wanted key, with the bucket's prefix */
    char *ids[UPLOADS_MOST];
    size_t count;
    int64_t date_s;     /* the service's clock */
    int64_t age_most_s; /* older uploads existed before ours */
    bool has_young;     /* an upload that began late, or belongs to another writer: check again
                         * later */
    /* The entry that is being read. */
    bool is_key;
    char *id;
    int64_t begun_s;
};

static void end_entry(struct found *found)
{
    const int64_t age_s = found->date_s - found->begun_s;
    const bool is_candidate = found->is_key && found->id != NULL && found->begun_s > 0 &&
                              age_s <= found->age_most_s && found->count < UPLOADS_MOST;
    const bool is_young = age_s < S3_EMPTY_MS / 1000;

    assert(found->count <= UPLOADS_MOST);
    found->has_young = found->has_young || (is_candidate && is_young);
    if (is_candidate && !is_young)
        found->ids[found->count++] = found->id;
    else
        free(found->id);
    found->id = NULL;
    found->is_key = false;
    found->begun_s = 0;
}

static bool take_upload(void *context, const char *path, struct zt_text text)
{
    struct found *found = context;

    if (strcmp(path, "ListMultipartUploadsResult/Upload") == 0)
        end_entry(found);
    else if (text.bytes == NULL)
        return true;
    else if (strcmp(path, "ListMultipartUploadsResult/Upload/Key") == 0)
        found->is_key = zt_text_equal(text, zt_text_from(found->key));
    else if (strcmp(path, "ListMultipartUploadsResult/Upload/Initiated") == 0)
        (void)bucket_time_of_list(text, &found->begun_s);
    else if (strcmp(path, "ListMultipartUploadsResult/Upload/UploadId") == 0 && found->id == NULL &&
             text.length > 0 && text.length <= ID_MOST)
        found->id = strndup(text.bytes, text.length);
    return true;
}

static void found_clear(struct found *found)
{
    for (size_t i = 0; i < found->count; i++)
        free(found->ids[i]);
    free(found->id);
    found->count = 0;
    found->id = NULL;
    found->is_key = false;
    found->begun_s = 0;
    found->has_young = false;
}

/* Replaces bad characters if the page does not parse: another upload's key may contain characters
 * that XML cannot represent. */
static enum zt_status read_list(struct found *found, struct remote_exchange *exchange,
                                struct zt_error *error)
{
    if (exchange->answer == NULL)
        return ZT_OK;
    if (xml_read((struct zt_text){exchange->answer, exchange->answer_length}, take_upload, found,
                 error) == ZT_OK)
        return ZT_OK;
    found_clear(found);
    exchange->answer_length = xml_mend(exchange->answer, exchange->answer_length);
    return xml_read((struct zt_text){exchange->answer, exchange->answer_length}, take_upload, found,
                    error);
}

static bool make_list_query(const struct found *found, char out_query[QUERY_SIZE])
{
    size_t used = 0;

    out_query[0] = '\0';
    return percent_append_plain(out_query, QUERY_SIZE, &used,
                                "max-uploads=" UPLOADS_TEXT "&prefix=") &&
           percent_append(out_query, QUERY_SIZE, &used, zt_text_from(found->key), false) &&
           percent_append_plain(out_query, QUERY_SIZE, &used, "&uploads=");
}

static enum zt_status list(struct s3_store *store, struct found *found, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char query[QUERY_SIZE];
    enum zt_status status;

    if (!bucket_own_path(&store->bucket, path) || !make_list_query(found, query))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
    bucket_exchange(&store->bucket, &exchange, "GET", path);
    exchange.query = query;
    exchange.body_most = PAGE_MOST;
    status = bucket_run(&store->bucket, METRIC_STORE_LIST, &exchange, by_now(), error);
    if (status == ZT_OK && !bucket_time_of_header(exchange.head.date, &found->date_s))
        status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the store states no time");
    if (status == ZT_OK)
        status = read_list(found, &exchange, error);
    remote_exchange_free(&exchange);
    return status;
}

/* --- one upload --- */

struct parts {
    bool is_list;
    bool has_part;
};

static bool take_part(void *context, const char *path, struct zt_text text)
{
    /* The root element is ListPartsResult; some services write ListPartsResponse. */
    const char *below = strchr(path, '/');
    struct parts *parts = context;

    (void)text;
    parts->is_list = parts->is_list || strncmp(path, "ListParts", strlen("ListParts")) == 0;
    parts->has_part = parts->has_part || (below != NULL && strcmp(below, "/Part") == 0);
    return true;
}

/* Sets *out_empty only if the upload certainly has no parts. Does not use max-parts, because some
 * services count it wrongly. */
static enum zt_status is_empty(struct s3_store *store, const char *key, const char *id,
                               bool *out_empty, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char query[QUERY_SIZE];
    struct parts parts = {.is_list = false};
    size_t used = 0;
    enum zt_status status;

    *out_empty = false;
    if (!bucket_path(&store->bucket, key, path) ||
        !percent_append_plain(query, QUERY_SIZE, &used, "uploadId=") ||
        !percent_append(query, QUERY_SIZE, &used, zt_text_from(id), false))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
    bucket_exchange(&store->bucket, &exchange, "GET", path);
    exchange.query = query;
    exchange.body_most = PAGE_MOST;
    status = bucket_run(&store->bucket, METRIC_STORE_OTHER, &exchange, by_now(), error);
    if (status == ZT_OK && exchange.answer != NULL &&
        xml_read((struct zt_text){exchange.answer, exchange.answer_length}, take_part, &parts,
                 error) == ZT_OK)
        *out_empty = parts.is_list && !parts.has_part;
    remote_exchange_free(&exchange);
    return status == ZT_NOT_FOUND ? ZT_OK : status;
}

static enum zt_status abort_empty(struct s3_store *store, const char *key, char *id,
                                  struct zt_error *error)
{
    struct s3_multipart one = {.id = id};
    bool empty;
    const enum zt_status status = is_empty(store, key, id, &empty, error);

    assert(strlen(key) < sizeof(one.key));
    if (status != ZT_OK || !empty)
        return status;
    strcpy(one.key, key);
    return s3_multipart_abort(store, &one, by_now(), error);
}

enum zt_status s3_lost_upload_abort(struct s3_store *store, const struct s3_multipart *multipart,
                                    struct zt_error *error)
{
    struct found *found = calloc(1, sizeof(*found));
    enum zt_status status;

    if (found == NULL)
        return zt_fail_memory(error, "a list of uploads");
    assert(multipart->id == NULL);
    snprintf(found->key, sizeof(found->key), "%s%s", store->bucket.prefix, multipart->key);
    found->age_most_s = (clock_ms() - multipart->begun_ms) / 1000 + SLACK_S;
    status = list(store, found, error);
    for (size_t i = 0; i < found->count && status == ZT_OK; i++)
        status = abort_empty(store, multipart->key, found->ids[i], error);
    if (status == ZT_OK && found->has_young)
        status = zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "an upload is too young");
    found_clear(found);
    free(found);
    if (status == ZT_OK)
        s3_multipart_drop(store, multipart);
    return status;
}
