#include "client/web_file.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "http/fields/digest_fields.h"
#include "input/date.h"
#include "zt/shards.h"

/* If a modification is this long before the response, no other one can follow within the same
 * second (RFC 9110 section 8.8.2.2). */
#define DATE_IS_STRONG_S 60

static void keep_validator(struct web_file *file, const struct remote_head *head)
{
    time_t modified;
    time_t answered;

    if (head->etag[0] == '"')
        strcpy(file->etag, head->etag);
    else if (http_date_parse(head->last_modified, &modified) &&
             http_date_parse(head->date, &answered) && answered - modified >= DATE_IS_STRONG_S)
        strcpy(file->last_modified, head->last_modified);
}

static void keep_time(struct web_file *file, const struct remote_head *head)
{
    time_t modified;

    file->has_time = http_date_parse(head->last_modified, &modified);
    if (file->has_time)
        file->modified_s = modified;
}

static void keep_digest(struct web_file *file, const struct remote_head *head)
{
    struct digest_field field = {0};

    if (head->repr_digest[0] == '\0' || !digest_field_parse(head->repr_digest, &field) ||
        !field.has_sha256)
        return;
    file->has_sha256 = true;
    memcpy(file->sha256, field.sha256, sizeof(file->sha256));
}

/* If the response is the whole file instead of a range, or is compressed, the header is enough. */
static bool accept_part(struct remote_exchange *exchange)
{
    return exchange->head.status == 206 && !exchange->head.is_compressed;
}

static bool has_head_only(const struct remote_exchange *exchange)
{
    return exchange->failure == REMOTE_FAILURE_REFUSED;
}

/* Reads the header of the response to the request for the first byte. */
static enum zt_status read_head(struct web_file *file, const struct remote_exchange *exchange,
                                struct zt_error *error)
{
    const struct remote_head *head = &exchange->head;

    if (head->status == 416)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "the file is empty");
    if (head->status != 200 && head->status != 206)
        return client_refusal(exchange, error);
    if (head->is_compressed)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                       "the server compresses the file although the request does not allow it");
    keep_validator(file, head);
    keep_time(file, head);
    keep_digest(file, head);
    memcpy(file->axis_suggestion, head->axis_suggestion, sizeof(file->axis_suggestion));
    file->size = head->status == 206 ? head->range_size : head->content_length;
    file->has_ranges =
        head->status == 206 && (file->etag[0] != '\0' || file->last_modified[0] != '\0');
    return ZT_OK;
}

enum zt_status web_file_open(struct client *client, const struct client_place *place,
                             struct web_file *out_file, struct zt_error *error)
{
    struct web_file file = {.place = *place, .size = UINT64_MAX};
    struct remote_exchange exchange;
    enum zt_status status;

    client_prepare(client, &file.place, &exchange);
    exchange.has_range = true;
    exchange.body_most = 1;
    exchange.accept = accept_part;
    exchange.fields[exchange.field_count++] = (struct remote_field){"accept-encoding", "identity"};
    status = client_ask(client, &file.place, &exchange, error);
    if (status == ZT_OK || has_head_only(&exchange))
        status = read_head(&file, &exchange, error);
    remote_exchange_free(&exchange);
    if (status == ZT_OK)
        *out_file = file;
    return status;
}

static void add_condition(const struct web_file *file, struct remote_exchange *exchange)
{
    assert(file->etag[0] == '\0' || file->etag[0] == '"');
    if (file->etag[0] != '\0')
        exchange->fields[exchange->field_count++] = (struct remote_field){"if-match", file->etag};
    else if (file->last_modified[0] != '\0')
        exchange->fields[exchange->field_count++] =
            (struct remote_field){"if-unmodified-since", file->last_modified};
}

bool web_file_ask_digest(struct client *client, struct web_file *file)
{
    struct client_place place = file->place;
    struct remote_exchange exchange;
    struct zt_error error;
    bool is_same = true;

    if (file->has_sha256)
        return true;
    client_prepare(client, &place, &exchange);
    exchange.method = "HEAD";
    exchange.fields[exchange.field_count++] =
        (struct remote_field){"want-repr-digest", "sha-256=10"};
    add_condition(file, &exchange);
    if (client_ask(client, &place, &exchange, &error) == ZT_OK) {
        is_same = exchange.head.status != 412;
        if (exchange.head.status == 200 && web_file_is_same(file, &exchange.head))
            keep_digest(file, &exchange.head);
    }
    remote_exchange_free(&exchange);
    return is_same;
}

bool web_file_is_at(struct client *client, struct web_file *file, const char *path)
{
    struct zt_source *source = NULL;
    struct zt_digest digest;
    struct stat status;
    bool is_same;

    if (stat(path, &status) != 0 || (uint64_t)status.st_size != file->size ||
        !web_file_ask_digest(client, file) || !file->has_sha256 ||
        zt_source_open_file(path, &source, NULL) != ZT_OK)
        return false;
    is_same = zt_source_size(source) == file->size &&
              zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, NULL) == ZT_OK &&
              memcmp(digest.bytes, file->sha256, sizeof(file->sha256)) == 0;
    zt_source_close(source);
    return is_same;
}

void web_file_prepare(struct client *client, const struct web_file *file, uint64_t first,
                      uint64_t last, struct remote_exchange *exchange)
{
    assert(!file->has_ranges || (first <= last && last < file->size));
    client_prepare(client, &file->place, exchange);
    exchange->has_range = file->has_ranges;
    exchange->range_first = first;
    exchange->range_last = last;
    exchange->fields[exchange->field_count++] =
        (struct remote_field){"accept-encoding", "identity"};
    if (file->has_ranges)
        add_condition(file, exchange);
}

bool web_file_is_same(const struct web_file *file, const struct remote_head *head)
{
    const uint64_t size =
        head->status == 206 && head->has_range ? head->range_size : head->content_length;

    if (head->is_compressed ||
        (file->size != UINT64_MAX && size != UINT64_MAX && size != file->size))
        return false;
    if (file->etag[0] != '\0')
        return strcmp(head->etag, file->etag) == 0;
    return file->last_modified[0] == '\0' || strcmp(head->last_modified, file->last_modified) == 0;
}

enum zt_status web_file_failure(const struct web_file *file, const struct remote_exchange *exchange,
                                struct zt_error *error)
{
    const unsigned status = exchange->head.status;

    if (status == 412 || status == 416 ||
        ((status == 200 || status == 206) && !web_file_is_same(file, &exchange->head)))
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file on the server has changed");
    if (exchange->status != ZT_OK) {
        client_failure(exchange, error);
        error->status = ZT_UNAVAILABLE;
        return ZT_UNAVAILABLE;
    }
    return client_refusal(exchange, error);
}
