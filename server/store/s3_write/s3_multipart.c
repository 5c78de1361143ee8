/* Multipart uploads: begin, send all parts, complete or abort. */
#include "store/s3_write/s3_multipart.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "input/xml_read.h"
#include "store/s3/percent.h"
#include "zt/digest.h"

#define MIB ((uint64_t)1 << 20)
/* Services accept up to 10,000 parts. */
#define PARTS_MOST 9000
#define IN_FLIGHT  4
/* Longer ids are rejected. Each byte may need three in a query. */
#define ID_MOST    1024
#define QUERY_SIZE (3 * ID_MOST + 64)
/* Time limits for beginning an upload, and for the completion of a probe. */
#define BEGIN_MS    15000
#define COMPLETE_MS 30000

/* --- the address of an upload --- */

struct address {
    char path[BUCKET_PATH_SIZE];
    char query[QUERY_SIZE];
};

/* Writes "partNumber=…&uploadId=…"; for number 0, only the id. */
static bool address_of(const struct s3_store *store, const char *key, const char *id,
                       unsigned number, struct address *out_address)
{
    char part[32] = "";
    size_t used = 0;

    assert(id != NULL && number <= PARTS_MOST + 1);
    out_address->query[0] = '\0';
    if (number > 0)
        snprintf(part, sizeof(part), "partNumber=%u&", number);
    return bucket_path(&store->bucket, key, out_address->path) &&
           percent_append_plain(out_address->query, QUERY_SIZE, &used, part) &&
           percent_append_plain(out_address->query, QUERY_SIZE, &used, "uploadId=") &&
           percent_append(out_address->query, QUERY_SIZE, &used, zt_text_from(id), false);
}

static enum zt_status too_long(struct zt_error *error)
{
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key or the upload's id is too long");
}

/* --- begin --- */

static bool take_id(void *context, const char *path, struct zt_text text)
{
    char **id = context;

    if (text.bytes != NULL && *id == NULL && text.length > 0 && text.length <= ID_MOST &&
        strcmp(path, "InitiateMultipartUploadResult/UploadId") == 0)
        *id = strndup(text.bytes, text.length);
    return true;
}

static enum zt_status read_id(const struct remote_exchange *exchange, char **out_id,
                              struct zt_error *error)
{
    const struct zt_text answer = {exchange->answer, exchange->answer_length};

    assert(*out_id == NULL);
    if (exchange->answer != NULL)
        (void)xml_read(answer, take_id, out_id, NULL);
    return *out_id != NULL ? ZT_OK
                           : zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                                     "the store gave no id for a multipart upload");
}

static struct s3_multipart *new_multipart(const char *key, unsigned part_count)
{
    struct s3_multipart *multipart = calloc(1, sizeof(*multipart));

    assert(part_count > 0 && strlen(key) < S3_KEY_SIZE);
    if (multipart == NULL)
        return NULL;
    snprintf(multipart->key, sizeof(multipart->key), "%s", key);
    multipart->part_count = part_count;
    multipart->etags = calloc(part_count, sizeof(multipart->etags[0]));
    if (multipart->etags != NULL)
        return multipart;
    free(multipart);
    return NULL;
}

/* Remembers an upload without an id: each request without a response may have begun an empty
 * upload. */
static void leave_lost(struct s3_store *store, const struct s3_multipart *multipart)
{
    struct s3_multipart *lost = new_multipart(multipart->key, 1);

    if (lost == NULL)
        return;
    assert(multipart->begun_ms > 0);
    lost->begun_ms = multipart->begun_ms;
    lost->abort_after_ms = clock_ms() + S3_EMPTY_MS;
    s3_journal_note(store, lost);
    s3_keeper_abort(store, lost);
}

static bool may_have_begun(const struct remote_exchange *exchange, bool is_answered)
{
    const bool was_sent = exchange->failure == REMOTE_FAILURE_TIMEOUT ||
                          exchange->failure == REMOTE_FAILURE_BROKEN ||
                          exchange->failure == REMOTE_FAILURE_BUSY;

    return exchange->tried > 1 || (!is_answered && was_sent);
}

static enum zt_status begin(struct s3_store *store, const struct s3_parts *parts,
                            struct s3_multipart *multipart, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    enum zt_status status;

    assert(multipart->id == NULL);
    if (!bucket_path(&store->bucket, parts->key, path))
        return too_long(error);
    bucket_exchange(&store->bucket, &exchange, "POST", path);
    exchange.query = "uploads=";
    exchange.body_most = BUCKET_REPLY_MOST;
    remote_exchange_add(&exchange, "x-amz-meta-ztserve-sha256", parts->sha256);
    multipart->begun_ms = clock_ms();
    s3_journal_note(store, multipart);
    status =
        bucket_run(&store->bucket, METRIC_STORE_WRITE, &exchange, clock_ms() + BEGIN_MS, error);
    if (status == ZT_OK)
        status = read_id(&exchange, &multipart->id, error);
    if (may_have_begun(&exchange, status == ZT_OK))
        leave_lost(store, multipart);
    remote_exchange_free(&exchange);
    if (status == ZT_OK)
        s3_journal_begun(store, multipart);
    else
        s3_multipart_drop(store, multipart);
    return status;
}

/* --- the parts --- */

struct sending;

struct flight {
    struct sending *sending;
    struct remote_exchange exchange;
    struct address address;
    char sha256[BUCKET_SHA256_SIZE];
    char range[64]; /* of a copied part */
    unsigned number;
    bool is_busy;
    bool is_done; /* to be judged */
};

struct sending {
    struct s3_store *store;
    const struct s3_parts *parts;
    struct s3_multipart *multipart;
    uint64_t part_bytes;
    struct zt_hasher *whole; /* of all parts read so far */
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct flight flights[IN_FLIGHT];
    enum zt_status status;
    struct zt_error *error;
};

static void part_done(struct remote_exchange *exchange)
{
    struct flight *flight = exchange->context;
    struct sending *sending = flight->sending;

    pthread_mutex_lock(&sending->lock);
    flight->is_done = true;
    pthread_cond_signal(&sending->done);
    pthread_mutex_unlock(&sending->lock);
}

static void set_body(struct flight *flight, uint64_t from, uint64_t length)
{
    struct remote_exchange *exchange = &flight->exchange;

    exchange->body = REMOTE_BODY_FILE;
    exchange->body_descriptor = flight->sending->parts->descriptor;
    exchange->body_offset = from;
    exchange->body_length = length;
    exchange->body_sha256 = flight->sha256;
    /* Time for three tries of one part. */
    exchange->time_ms = 3 * (15000 + 1000 * (length / MIB));
}

/* The service copies the part, without a byte on the line until it is done. */
static void set_source(struct flight *flight, uint64_t from, uint64_t length)
{
    struct remote_exchange *exchange = &flight->exchange;
    const struct s3_parts *parts = flight->sending->parts;

    snprintf(flight->range, sizeof(flight->range), "bytes=%" PRIu64 "-%" PRIu64, from,
             from + length - 1);
    remote_exchange_add(exchange, "x-amz-copy-source", parts->copy_source);
    if (parts->copy_etag[0] != '\0')
        remote_exchange_add(exchange, "x-amz-copy-source-if-match", parts->copy_etag);
    remote_exchange_add(exchange, "x-amz-copy-source-range", flight->range);
    exchange->try_ms = S3_COPY_MS(length);
    exchange->time_ms = 2 * exchange->try_ms;
}

static void set_exchange(struct flight *flight, uint64_t from, uint64_t length)
{
    struct remote_exchange *exchange = &flight->exchange;
    const struct sending *sending = flight->sending;

    assert(length > 0 && from + length <= sending->parts->length);
    bucket_exchange(&sending->store->bucket, exchange, "PUT", flight->address.path);
    exchange->query = flight->address.query;
    exchange->body_most = BUCKET_REPLY_MOST;
    if (sending->parts->copy_source != NULL)
        set_source(flight, from, length);
    else
        set_body(flight, from, length);
    exchange->done = part_done;
    exchange->context = flight;
}

static enum zt_status send_part(struct sending *sending, struct flight *flight, unsigned number)
{
    const uint64_t from = (number - 1) * sending->part_bytes;
    const uint64_t left = sending->parts->length - from;
    const uint64_t length = left < sending->part_bytes ? left : sending->part_bytes;
    enum zt_status status = ZT_OK;

    assert(!flight->is_busy && number > 0 && number <= sending->multipart->part_count);
    flight->number = number;
    if (!address_of(sending->store, sending->parts->key, sending->multipart->id, number,
                    &flight->address))
        return too_long(sending->error);
    if (sending->parts->copy_source == NULL)
        status = s3_hash_part(sending->parts->descriptor, from, length, sending->whole,
                              flight->sha256, sending->error);
    if (status != ZT_OK)
        return status;
    assert(from + length == sending->parts->length || length == sending->part_bytes);
    set_exchange(flight, from, length);
    flight->is_busy = true;
    flight->is_done = false;
    remote_begin(sending->store->remote, &flight->exchange);
    return ZT_OK;
}

static bool take_copied_etag(void *context, const char *path, struct zt_text text)
{
    char *etag = context;

    if (text.bytes != NULL && strcmp(path, "CopyPartResult/ETag") == 0 &&
        text.length < BUCKET_ETAG_SIZE) {
        memcpy(etag, text.bytes, text.length);
        etag[text.length] = '\0';
    }
    return true;
}

/* Finds the ETag of a part: in the header, or in the body if it was copied. */
static void find_etag(const struct flight *flight, char out_etag[BUCKET_ETAG_SIZE])
{
    const struct remote_exchange *exchange = &flight->exchange;
    struct zt_error ignored;

    out_etag[0] = '\0';
    if (flight->sending->parts->copy_source == NULL)
        snprintf(out_etag, BUCKET_ETAG_SIZE, "%s", exchange->head.etag);
    else if (exchange->answer != NULL)
        (void)xml_read((struct zt_text){exchange->answer, exchange->answer_length},
                       take_copied_etag, out_etag, &ignored);
}

static void take_result(struct sending *sending, struct flight *flight)
{
    struct zt_error ignored;
    struct zt_error *error = sending->status == ZT_OK ? sending->error : &ignored;
    char etag[BUCKET_ETAG_SIZE];
    enum zt_status status =
        bucket_judge(&sending->store->bucket, METRIC_STORE_WRITE, &flight->exchange, error);

    find_etag(flight, etag);

    assert(sending->multipart->etags[flight->number - 1] == NULL);
    assert(flight->is_busy && flight->is_done);
    flight->is_busy = false;
    if (status == ZT_OK && etag[0] == '\0')
        status =
            zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the store gave no ETag for a part");
    if (status == ZT_OK) {
        sending->multipart->etags[flight->number - 1] = strdup(etag);
        if (sending->multipart->etags[flight->number - 1] == NULL)
            status = zt_fail_memory(error, "a part");
    }
    remote_exchange_free(&flight->exchange);
    if (sending->status == ZT_OK)
        sending->status = status;
}

static struct flight *find_flight(struct sending *sending, bool is_busy)
{
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (sending->flights[i].is_busy == is_busy && (!is_busy || sending->flights[i].is_done))
            return &sending->flights[i];
    return NULL;
}

/* Waits until any part is done, and takes its result. */
static void await_one(struct sending *sending)
{
    struct flight *flight;

    pthread_mutex_lock(&sending->lock);
    while ((flight = find_flight(sending, true)) == NULL)
        pthread_cond_wait(&sending->done, &sending->lock);
    pthread_mutex_unlock(&sending->lock);
    take_result(sending, flight);
}

static bool any_busy(const struct sending *sending)
{
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (sending->flights[i].is_busy)
            return true;
    return false;
}

static void send_all(struct sending *sending)
{
    for (unsigned number = 1; number <= sending->multipart->part_count && sending->status == ZT_OK;
         number++) {
        struct flight *flight;

        while ((flight = find_flight(sending, false)) == NULL)
            await_one(sending);
        if (sending->status == ZT_OK) {
            flight->sending = sending;
            sending->status = send_part(sending, flight, number);
        }
    }
    while (any_busy(sending))
        await_one(sending);
}

static enum zt_status send_parts(struct s3_store *store, const struct s3_parts *parts,
                                 struct s3_multipart *multipart, uint64_t part_bytes,
                                 struct zt_error *error)
{
    struct sending *sending = calloc(1, sizeof(*sending));
    enum zt_status status;

    if (sending == NULL)
        return zt_fail_memory(error, "sending parts");
    sending->store = store;
    sending->parts = parts;
    sending->multipart = multipart;
    sending->part_bytes = part_bytes;
    sending->error = error;
    if (zt_hasher_new(ZT_DIGEST_SHA256, &sending->whole) != ZT_OK) {
        free(sending);
        return zt_fail_memory(error, "sending parts");
    }
    pthread_mutex_init(&sending->lock, NULL);
    pthread_cond_init(&sending->done, NULL);
    assert(multipart->id != NULL);
    send_all(sending);
    status = sending->status;
    /* The service has checked each part against its hash; only now is the whole file checked
     * against the received SHA-256. */
    if (status == ZT_OK && parts->copy_source == NULL)
        status = s3_hash_end(sending->whole, parts->sha256, error);
    pthread_cond_destroy(&sending->done);
    pthread_mutex_destroy(&sending->lock);
    zt_hasher_free(sending->whole);
    free(sending);
    return status;
}

static uint64_t choose_part(const struct s3_parts *parts)
{
    const uint64_t least = (parts->length + PARTS_MOST - 1) / PARTS_MOST;

    assert(least > 0);
    return parts->part_bytes > least ? parts->part_bytes : (least + MIB - 1) / MIB * MIB;
}

enum zt_status s3_multipart_send(struct s3_store *store, const struct s3_parts *parts,
                                 struct s3_multipart **out_multipart, struct zt_error *error)
{
    const uint64_t part_bytes = choose_part(parts);
    struct s3_multipart *multipart;
    enum zt_status status;

    assert(parts->length > 0);
    multipart = new_multipart(parts->key, (unsigned)((parts->length - 1) / part_bytes + 1));
    if (multipart == NULL)
        return zt_fail_memory(error, "a multipart upload");
    status = begin(store, parts, multipart, error);
    if (status == ZT_OK)
        status = send_parts(store, parts, multipart, part_bytes, error);
    if (status == ZT_OK) {
        *out_multipart = multipart;
        return ZT_OK;
    }
    if (multipart->id != NULL)
        s3_keeper_abort(store, multipart);
    else
        s3_multipart_free(multipart);
    return status;
}

/* --- completing --- */

static void write_escaped(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '&')
            fputs("&amp;", stream);
        else if (*text == '<')
            fputs("&lt;", stream);
        else if (*text == '>')
            fputs("&gt;", stream);
        else
            fputc(*text, stream);
}

/* Writes the list of parts. Returns NULL without memory. */
static char *part_list(const struct s3_multipart *multipart, size_t *out_length)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, out_length);
    bool failed;

    if (stream == NULL)
        return NULL;
    fputs("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">", stream);
    for (unsigned i = 0; i < multipart->part_count; i++) {
        assert(multipart->etags[i] != NULL);
        fprintf(stream, "<Part><PartNumber>%u</PartNumber><ETag>", i + 1);
        write_escaped(stream, multipart->etags[i]);
        fputs("</ETag></Part>", stream);
    }
    fputs("</CompleteMultipartUpload>", stream);
    failed = ferror(stream) != 0;
    if (fclose(stream) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

static enum zt_status run_completion(struct s3_store *store, struct s3_claim *claim,
                                     struct remote_exchange *exchange, struct zt_error *error)
{
    exchange->body_most = BUCKET_REPLY_MOST;
    /* If a completion hangs, a second one must not begin while the first may still run. */
    exchange->try_ms = UINT32_MAX;
    if (claim != NULL)
        return s3_claim_run(claim, exchange, error);
    return bucket_run(&store->bucket, METRIC_STORE_WRITE, exchange, clock_ms() + COMPLETE_MS,
                      error);
}

enum zt_status s3_multipart_complete(struct s3_store *store, struct s3_claim *claim,
                                     struct s3_multipart *multipart, enum s3_completion condition,
                                     const char *etag, struct zt_error *error)
{
    struct remote_exchange exchange;
    struct address address;
    char sha256[BUCKET_SHA256_SIZE];
    enum zt_status status;
    size_t length = 0;
    char *body;

    assert(multipart->id != NULL && (condition != S3_COMPLETE_IF_VERSION || etag != NULL));
    if (!address_of(store, multipart->key, multipart->id, 0, &address))
        return too_long(error);
    body = part_list(multipart, &length);
    if (body == NULL)
        return zt_fail_memory(error, "a list of parts");
    status = bucket_sha256(body, length, sha256, error);
    if (status != ZT_OK) {
        free(body);
        return status;
    }
    bucket_exchange(&store->bucket, &exchange, "POST", address.path);
    exchange.query = address.query;
    exchange.body = REMOTE_BODY_MEMORY;
    exchange.body_bytes = body;
    exchange.body_length = length;
    exchange.body_sha256 = sha256;
    remote_exchange_add(&exchange, "content-type", "application/xml");
    if (condition == S3_COMPLETE_IF_ABSENT)
        remote_exchange_add(&exchange, "if-none-match", "*");
    else if (condition == S3_COMPLETE_IF_VERSION)
        remote_exchange_add(&exchange, "if-match", etag);
    multipart->is_completing = true;
    s3_journal_completing(store, multipart);
    status = run_completion(store, claim, &exchange, error);
    multipart->is_completing = exchange.status != ZT_OK || exchange.tried > 1;
    remote_exchange_free(&exchange);
    free(body);
    return status;
}

/* --- the end --- */

enum zt_status s3_multipart_abort(struct s3_store *store, const struct s3_multipart *multipart,
                                  int64_t by_ms, struct zt_error *error)
{
    struct remote_exchange exchange;
    struct address address;
    enum zt_status status;

    assert(!multipart->is_completing || multipart->abort_after_ms > 0);
    if (multipart->id == NULL)
        return s3_lost_upload_abort(store, multipart, error);
    if (!address_of(store, multipart->key, multipart->id, 0, &address))
        return too_long(error);
    bucket_exchange(&store->bucket, &exchange, "DELETE", address.path);
    exchange.query = address.query;
    exchange.body_most = BUCKET_REPLY_MOST;
    status = bucket_run(&store->bucket, METRIC_STORE_WRITE, &exchange, by_ms, error);
    remote_exchange_free(&exchange);
    if (status != ZT_OK && status != ZT_NOT_FOUND)
        return status;
    s3_multipart_drop(store, multipart);
    return ZT_OK;
}

void s3_multipart_drop(struct s3_store *store, const struct s3_multipart *multipart)
{
    s3_journal_drop(store, multipart->journal);
}

void s3_multipart_free(struct s3_multipart *multipart)
{
    if (multipart == NULL)
        return;
    for (unsigned i = 0; i < multipart->part_count; i++)
        free(multipart->etags[i]);
    free(multipart->etags);
    free(multipart->id);
    free(multipart);
}
