#include "store/s3/bucket_read.h"

#include <assert.h>
#include <string.h>

static bool has_version(const struct bucket_read *read, const struct remote_head *head)
{
    char etag[BUCKET_ETAG_SIZE];

    return bucket_etag_read(zt_text_from(head->etag), etag) && strcmp(etag, read->etag) == 0;
}

/* Returns true if the response has exactly the requested bytes. */
static bool is_range(const struct bucket_read *read, const struct remote_head *head)
{
    const uint64_t first = remote_range_first(&read->exchange);
    const uint64_t length = read->fetch->offset + read->fetch->length - first;

    if (head->content_length != UINT64_MAX && head->content_length != length)
        return false;
    if (head->status == 206)
        return head->has_range && head->range_first == first &&
               head->range_last == first + length - 1 && head->range_size == read->size_bytes;
    return head->status == 200 && first == 0 && length == read->size_bytes;
}

/* Runs on the remote's thread, before the body. */
static bool accept_answer(struct remote_exchange *exchange)
{
    struct bucket_read *read = (struct bucket_read *)exchange;
    const struct remote_head *head = &exchange->head;

    if (head->status / 100 != 2)
        return true;
    if (has_version(read, head))
        return is_range(read, head);
    atomic_store(&read->is_other, true);
    return false;
}

static void on_progress(struct remote_exchange *exchange, size_t arrived)
{
    const struct bucket_read *read = (const struct bucket_read *)exchange;

    assert(arrived < read->fetch->length);
    read->fetch->arrived(read->fetch, arrived);
}

static void on_done(struct remote_exchange *exchange)
{
    struct bucket_read *read = (struct bucket_read *)exchange;
    struct zt_error error;
    enum zt_status status = bucket_judge(read->bucket, METRIC_STORE_READ, exchange, &error);

    if (status != ZT_OK &&
        (status == ZT_STALE || status == ZT_NOT_FOUND || atomic_load(&read->is_other)))
        status = zt_fail(&error, ZT_STALE, NULL, ZT_NO_OFFSET,
                         "the file was replaced or removed in the object store");
    read->done(read, status, status == ZT_OK ? NULL : &error);
}

void bucket_read_prepare(struct bucket_read *read)
{
    struct remote_exchange *exchange = &read->exchange;
    const struct cache_fetch *fetch = read->fetch;

    assert(fetch->length > 0 && fetch->offset < read->size_bytes &&
           fetch->length <= read->size_bytes - fetch->offset);
    assert(read->etag[0] != '\0' && read->done != NULL);
    bucket_exchange(read->bucket, exchange, "GET", read->url_path);
    /* Ceph accepts the ETag only without quotes. */
    remote_exchange_add(exchange, "if-match", read->etag);
    exchange->has_range = true;
    exchange->range_first = fetch->offset;
    exchange->range_last = fetch->offset + fetch->length - 1;
    exchange->into = fetch->bytes;
    exchange->into_length = (size_t)fetch->length;
    exchange->is_urgent = fetch->is_urgent;
    exchange->progressed = read->reports_progress && fetch->arrived != NULL ? on_progress : NULL;
    exchange->accept = accept_answer;
    exchange->done = on_done;
}
