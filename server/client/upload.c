#include "client/upload.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/thread.h"
#include "client/api_address.h"
#include "client/model_address.h"
#include "client/repository.h"
#include "client/upload_memory.h"
#include "client/web_file.h"
#include "http/fields/digest_fields.h"
#include "zt/shards.h"

/* Bytes per request. */
#define CHUNK_BYTES ((uint64_t)64 << 20)
/* Maximum number of new uploads if the server loses them. */
#define CREATIONS_MOST 3
/* The response to the last bytes comes when the whole file has been checked. These bytes are sent
 * alone, so that a dead connection is noticed sooner for the others. */
#define CHECK_S    600
#define LAST_BYTES ((uint64_t)1 << 16)
#define TURN_MS    100

struct sending {
    const struct upload *upload;
    int descriptor;
    uint64_t size;
    struct timespec modified;  /* at the beginning */
    struct client_place place; /* of the upload */
    char *memory;              /* client/upload_memory.h */
    bool is_begun;             /* the upload has a place */
    unsigned answer; /* the status of the last refusal, of data or of a question; 0: none */
    uint64_t offset; /* bytes that the server has */
    uint64_t before;
    char digest[DIGEST_FIELD_SIZE]; /* of a file, as Repr-Digest; empty: not hashed yet */
    uint64_t seed;                  /* of pauses */
    uint64_t pause_ms;              /* before the next try */
    bool is_crowded;                /* creation was refused because there are too many uploads */
    bool was_refused;               /* the last bytes were refused, but perhaps not finally */
    struct zt_error refusal;
    atomic_uint_least64_t given;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
};

/* --- requests --- */

static void gave(struct remote_exchange *exchange, size_t length)
{
    struct sending *sending = exchange->context;

    atomic_fetch_add(&sending->given, length);
}

static void done(struct remote_exchange *exchange)
{
    struct sending *sending = exchange->context;

    pthread_mutex_lock(&sending->lock);
    sending->is_done = true;
    pthread_cond_signal(&sending->changed);
    pthread_mutex_unlock(&sending->lock);
}

/* Waits for the end of an exchange, and reports progress. */
static void run(struct sending *sending, struct remote_exchange *exchange, uint64_t begun)
{
    const struct upload *upload = sending->upload;

    sending->is_done = false;
    exchange->done = done;
    exchange->context = sending;
    client_begin(upload->client, exchange);
    pthread_mutex_lock(&sending->lock);
    while (!sending->is_done) {
        uint64_t at = begun + atomic_load(&sending->given);

        thread_wait_ms(&sending->changed, &sending->lock, TURN_MS);
        if (at > sending->size)
            at = sending->size;
        if (at > sending->before)
            upload->report_progress(upload->context, sending->size, sending->before,
                                    at - sending->before);
    }
    pthread_mutex_unlock(&sending->lock);
}

static void add_field(struct remote_exchange *exchange, const char *name, const char *value)
{
    exchange->fields[exchange->field_count++] = (struct remote_field){name, value};
}

static void prepare(struct sending *sending, const struct client_place *place,
                    struct remote_exchange *exchange)
{
    client_prepare(sending->upload->client, place, exchange);
    add_field(exchange, "tus-resumable", "1.0.0");
}

/* --- creation --- */

/* Hashes the file, unless that has been done, so that the server can compare what it receives. */
static enum zt_status hash(struct sending *sending, struct zt_error *error)
{
    struct zt_source *source = NULL;
    struct zt_digest digest;
    enum zt_status status;

    if (sending->digest[0] != '\0')
        return ZT_OK;
    status = zt_source_open_file(sending->upload->path, &source, error);
    if (status == ZT_OK)
        status = zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, error);
    zt_source_close(source);
    if (status == ZT_OK)
        digest_field_format(digest.bytes, sending->digest);
    return status;
}

/* Explains a refused creation. A server that is not a server of models knows neither the path nor
 * the method. */
static enum zt_status refuse_creation(const struct remote_exchange *exchange,
                                      struct zt_error *error)
{
    const unsigned status = exchange->head.status;

    if (status != 404 && status != 405 && status != 501)
        return client_refusal(exchange, error);
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                   "the server does not support resumable uploads (%u): is it a model server?",
                   status);
}

/* Finds where uploads are created. */
static enum zt_status place_uploads(const struct upload *upload, struct client_place *out_place,
                                    struct zt_error *error)
{
    char target[WEB_TARGET_SIZE + sizeof("/v1/resumable")];

    if (!upload->is_file)
        return api_address_beside(&upload->target, "/v1/resumable", out_place, error);
    snprintf(target, sizeof(target), "%s/v1/resumable", upload->base);
    return client_place_beside(&upload->target, target, out_place, error);
}

/* Tries once. *out_most: after how many failures like this one to give up. */
static enum zt_status try_to_create(struct sending *sending, unsigned failures, unsigned *out_most,
                                    struct zt_error *error)
{
    const struct upload *upload = sending->upload;
    char metadata[sizeof("model ") + ZT_BASE64_SIZE(WEB_TARGET_SIZE)];
    struct remote_exchange exchange;
    struct client_place place;
    char length[24];
    enum zt_status status = place_uploads(upload, &place, error);

    *out_most = 0;
    if (status != ZT_OK)
        return status;
    assert(strlen(upload->name) < WEB_TARGET_SIZE);
    strcpy(metadata, upload->is_file ? "path " : "model ");
    zt_base64_write(metadata + strlen(metadata), upload->name, strlen(upload->name), ZT_BASE64);
    snprintf(length, sizeof(length), "%" PRIu64, sending->size);
    prepare(sending, &place, &exchange);
    exchange.method = "POST";
    client_limit_tries(&exchange, 1);
    add_field(&exchange, "upload-length", length);
    add_field(&exchange, "upload-metadata", metadata);
    if (upload->only_new)
        add_field(&exchange, "if-none-match", "*");
    if (upload->is_file)
        add_field(&exchange, "repr-digest", sending->digest);
    status = client_ask(upload->client, &place, &exchange, error);
    if (exchange.status != ZT_OK)
        *out_most = client_failures_most(&exchange);
    sending->is_crowded = exchange.status != ZT_OK && exchange.head.status == 429;
    sending->pause_ms = client_pause_ms(&exchange, failures, &sending->seed);
    if (status == ZT_OK && exchange.head.status != 201)
        status = refuse_creation(&exchange, error);
    if (status == ZT_OK &&
        (!web_address_follow(&place.address, exchange.head.location, &sending->place.address) ||
         strcmp(sending->place.address.origin, place.address.origin) != 0))
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "the server returned an invalid location for the upload");
    sending->place.is_trusted = place.is_trusted;
    sending->offset = 0;
    remote_exchange_free(&exchange);
    return status;
}

static void pause_before_try(const struct sending *sending)
{
    const struct timespec pause = {(time_t)(sending->pause_ms / 1000),
                                   (long)(sending->pause_ms % 1000) * CLOCK_NS_PER_MS};

    nanosleep(&pause, NULL);
}

/* A server that already has the maximum number of this client's uploads asks for pauses of seconds,
 * so the user is informed. */
static enum zt_status create(struct sending *sending, struct zt_error *error)
{
    const struct upload *upload = sending->upload;
    bool has_reported = false;
    unsigned failures = 0;
    unsigned most = 0;
    enum zt_status status = upload->is_file ? hash(sending, error) : ZT_OK;

    if (status == ZT_OK)
        status = try_to_create(sending, failures, &most, error);
    while (status == ZT_UNAVAILABLE && ++failures < most) {
        if (sending->is_crowded && !has_reported)
            upload->report_waiting(upload->context, error);
        has_reported = has_reported || sending->is_crowded;
        pause_before_try(sending);
        status = try_to_create(sending, failures, &most, error);
    }
    sending->is_begun = status == ZT_OK;
    if (status == ZT_OK)
        upload_memory_write(sending->memory, &sending->place.address);
    return status;
}

/* --- sending --- */

/* Asks for the server's offset. Returns ZT_NOT_FOUND if the upload is gone. */
static enum zt_status ask_offset(struct sending *sending, unsigned failures, struct zt_error *error)
{
    struct client_place place = sending->place;
    struct remote_exchange exchange;
    enum zt_status status;

    prepare(sending, &sending->place, &exchange);
    exchange.method = "HEAD";
    client_limit_tries(&exchange, 1);
    status = client_ask(sending->upload->client, &place, &exchange, error);
    sending->answer = status == ZT_OK ? exchange.head.status : 0;
    if (status == ZT_OK && (exchange.head.status == 404 || exchange.head.status == 410))
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                         "the server has lost the upload, or rejected it as invalid");
    else if (status == ZT_OK && exchange.head.status == 423)
        status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                         "another connection is still sending this upload (423): is another "
                         "process pushing the file?");
    else if (status == ZT_OK && exchange.head.status / 100 != 2)
        status = client_refusal(&exchange, error);
    else if (status == ZT_OK && exchange.head.upload_offset > sending->size)
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "the server does not report how much it has received");
    else if (status == ZT_OK)
        sending->offset = exchange.head.upload_offset;
    sending->pause_ms = client_pause_ms(&exchange, failures, &sending->seed);
    remote_exchange_free(&exchange);
    return status;
}

/* The server takes any JSON file for an index. */
static void advise_folder(const struct upload *upload, struct zt_error *error)
{
    const struct zt_error refusal = *error;
    const char *slash = strrchr(upload->path, '/');

    if (upload->is_file ||
        repository_stage_of(slash != NULL ? slash + 1 : upload->path) != STAGE_OTHERS)
        return;
    zt_fail(error, refusal.status, NULL, ZT_NO_OFFSET, "%s; not a tensor file: push its folder",
            refusal.message);
    error->os_error = refusal.os_error;
}

/* Judges a response that did not accept the bytes. Returns ZT_UNAVAILABLE if the offset must be
 * asked for. */
static enum zt_status judge(struct sending *sending, const struct remote_exchange *exchange,
                            struct zt_error *error)
{
    const unsigned status = exchange->head.status;

    if (exchange->status != ZT_OK) {
        client_failure(exchange, error);
        return ZT_UNAVAILABLE;
    }
    client_refusal(exchange, error);
    if (status == 422)
        advise_folder(sending->upload, error);
    sending->answer = status;
    sending->was_refused = true;
    sending->refusal = *error;
    /* The offset differs, or the server is still busy with earlier bytes. */
    return status == 409 || status == 423 ? ZT_UNAVAILABLE : error->status;
}

/* --- a file that changes --- */

/* Returns true if the file has changed: the upload would then be a mixture of two versions. */
static bool has_changed(const struct sending *sending)
{
    struct stat file;

    return fstat(sending->descriptor, &file) != 0 || (uint64_t)file.st_size != sending->size ||
           file.st_mtim.tv_sec != sending->modified.tv_sec ||
           file.st_mtim.tv_nsec != sending->modified.tv_nsec;
}

/* Makes the server discard the upload, if it can be reached. */
static void terminate(struct sending *sending)
{
    struct client_place place = sending->place;
    struct remote_exchange exchange;
    struct zt_error error;

    prepare(sending, &sending->place, &exchange);
    exchange.method = "DELETE";
    client_limit_tries(&exchange, 1);
    (void)client_ask(sending->upload->client, &place, &exchange, &error);
    remote_exchange_free(&exchange);
}

/* --- chunks --- */

static uint64_t chunk_length(uint64_t left)
{
    if (left <= LAST_BYTES)
        return left;
    left -= LAST_BYTES;
    return left < CHUNK_BYTES ? left : CHUNK_BYTES;
}

static enum zt_status send_chunk(struct sending *sending, unsigned failures, struct zt_error *error)
{
    const uint64_t begun = sending->offset;
    const uint64_t left = sending->size - begun;
    struct remote_exchange exchange;
    enum zt_status status = ZT_OK;
    char offset[24];

    snprintf(offset, sizeof(offset), "%" PRIu64, begun);
    prepare(sending, &sending->place, &exchange);
    exchange.method = "PATCH";
    add_field(&exchange, "content-type", "application/offset+octet-stream");
    add_field(&exchange, "upload-offset", offset);
    exchange.body = REMOTE_BODY_FILE;
    exchange.body_descriptor = sending->descriptor;
    exchange.body_offset = begun;
    exchange.body_length = chunk_length(left);
    client_limit_tries(&exchange, 1);
    if (left <= LAST_BYTES)
        exchange.stall_s = CHECK_S;
    exchange.gave = gave;
    atomic_store(&sending->given, 0);
    sending->was_refused = false;
    run(sending, &exchange, begun);
    if (exchange.status == ZT_OK && exchange.head.status == 204 &&
        exchange.head.upload_offset == begun + exchange.body_length)
        sending->offset = exchange.head.upload_offset;
    else
        status = judge(sending, &exchange, error);
    sending->pause_ms = client_pause_ms(&exchange, failures, &sending->seed);
    remote_exchange_free(&exchange);
    return status;
}

/* Asks for the server's offset after a failure. A response to HEAD has no body with a reason, but
 * the response to the bytes may have had one. */
static enum zt_status ask_again(struct sending *sending, unsigned *failures, struct zt_error *error)
{
    enum zt_status status = ZT_UNAVAILABLE;

    while (status == ZT_UNAVAILABLE && *failures < CLIENT_FAILURES_MOST) {
        pause_before_try(sending);
        status = ask_offset(sending, ++*failures, error);
    }
    if (status == ZT_IO && sending->was_refused)
        *error = sending->refusal;
    return status;
}

/* Sends the bytes that the server does not have yet. Returns ZT_NOT_FOUND if the upload is gone. */
static enum zt_status send_rest(struct sending *sending, struct zt_error *error)
{
    unsigned failures = 0;

    while (sending->offset < sending->size) {
        const uint64_t begun = sending->offset;
        enum zt_status status;

        if (sending->size - begun <= LAST_BYTES && has_changed(sending))
            return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                           "the file was changed while it was sent");
        status = send_chunk(sending, failures, error);

        if (status == ZT_UNAVAILABLE)
            status = ask_again(sending, &failures, error);
        if (status != ZT_OK)
            return status;
        if (sending->offset > begun)
            failures = 0;
        else if (failures >= CLIENT_FAILURES_MOST)
            return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                           "the server accepts no more bytes");
    }
    return ZT_OK;
}

/* Returns true if the server still has the upload, and may accept its end after something else has
 * changed: the token, its disk, or an obstacle to the model. */
static bool may_succeed_later(unsigned answer)
{
    return answer == 401 || answer == 403 || answer == 409 || answer == 423 || answer >= 500;
}

/* Keeps the upload for another run, or makes the server discard it if no run can use it, because
 * the server keeps only a few per client. */
static void end_upload(struct sending *sending, enum zt_status status)
{
    if (status == ZT_UNAVAILABLE || (status == ZT_IO && may_succeed_later(sending->answer)))
        return;
    if (status != ZT_OK && status != ZT_NOT_FOUND && sending->is_begun)
        terminate(sending);
    upload_memory_remove(sending->memory);
}

static enum zt_status send_all(struct sending *sending, struct zt_error *error)
{
    enum zt_status status = ZT_NOT_FOUND;
    unsigned failures = 0;

    if (upload_memory_read(sending->memory, &sending->place.address) &&
        strcmp(sending->place.address.origin, sending->upload->target.address.origin) == 0) {
        sending->place.is_trusted = true;
        sending->is_begun = true;
        status = ask_offset(sending, failures, error);
        if (status == ZT_UNAVAILABLE)
            status = ask_again(sending, &failures, error);
        sending->before = status == ZT_OK ? sending->offset : 0;
        if (status == ZT_OK)
            status = send_rest(sending, error);
    }
    for (unsigned i = 0; i < CREATIONS_MOST && status == ZT_NOT_FOUND; i++) {
        sending->before = 0;
        sending->answer = 0;
        status = create(sending, error);
        if (status == ZT_OK)
            status = send_rest(sending, error);
    }
    end_upload(sending, status);
    return status;
}

/* --- existing models --- */

/* No range of an empty file can be requested. */
static bool is_empty_there(const struct upload *upload)
{
    struct client_place place = upload->target;
    struct remote_exchange exchange;
    struct zt_error error;
    bool is_empty;

    client_prepare(upload->client, &place, &exchange);
    exchange.method = "HEAD";
    is_empty = client_ask(upload->client, &place, &exchange, &error) == ZT_OK &&
               exchange.head.status == 200 && exchange.head.content_length == 0;
    remote_exchange_free(&exchange);
    return is_empty;
}

/* Finds out whether the model or file of that name has these bytes, and otherwise which file they
 * would replace. */
static enum zt_status compare(const struct upload *upload, struct upload_result *result,
                              bool *out_exists, struct zt_error *error)
{
    const struct model_wish nothing = {.format = NULL};
    struct model_file file = {.name = ""};
    struct web_file web;
    char url[WEB_ORIGIN_SIZE + WEB_TARGET_SIZE];
    enum zt_status status = ZT_OK;

    snprintf(url, sizeof(url), "%s%s", upload->target.address.origin,
             upload->target.address.target);
    file.place = upload->target;
    if (!upload->is_file)
        status = model_address_find(upload->client, url, &nothing, &file, error);
    if (status == ZT_OK)
        status = web_file_open(upload->client, &file.place, &web, error);
    if (status == ZT_IO && error->os_error == ENOENT)
        return ZT_OK;
    /* An existing model that cannot be read may be replaced. */
    *out_exists = true;
    if (status != ZT_OK) {
        result->was_there = result->size == 0 && is_empty_there(upload);
        return status == ZT_UNAVAILABLE ? status : ZT_OK;
    }
    result->was_there =
        web.size == result->size && web_file_is_at(upload->client, &web, upload->path);
    snprintf(result->replaced, sizeof(result->replaced), "%s", result->was_there ? "" : file.name);
    return ZT_OK;
}

static enum zt_status run_with(struct sending *sending, const struct stat *file,
                               struct upload_result *result, struct zt_error *error)
{
    const struct upload *upload = sending->upload;
    char url[WEB_ORIGIN_SIZE + WEB_TARGET_SIZE];
    bool exists = false;
    enum zt_status status;

    result->size = sending->size;
    status = compare(upload, result, &exists, error);
    if (status != ZT_OK || result->was_there)
        return status;
    if (exists && upload->only_new)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                       "the server already has another %s of this name",
                       upload->is_file ? "file" : "model");
    snprintf(url, sizeof(url), "%s%s", upload->target.address.origin,
             upload->target.address.target);
    sending->memory = upload_memory_path(url, upload->path, file);
    status = send_all(sending, error);
    result->resumed = sending->before;
    free(sending->memory);
    return status;
}

enum zt_status upload_run(const struct upload *upload, struct upload_result *out_result,
                          struct zt_error *error)
{
    struct sending sending = {.upload = upload,
                              .seed = (uint64_t)clock_wall_ns() | 1,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER};
    struct upload_result result = {0};
    struct stat file;
    enum zt_status status;

    sending.descriptor = open(upload->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (sending.descriptor < 0 || fstat(sending.descriptor, &file) != 0) {
        zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s", strerrordesc_np(errno));
        if (sending.descriptor >= 0)
            close(sending.descriptor);
        return ZT_IO;
    }
    sending.size = (uint64_t)file.st_size;
    sending.modified = file.st_mtim;
    if (!S_ISREG(file.st_mode) || (file.st_size == 0 && !upload->is_file))
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "this is not a model: it is empty, or not a regular file");
    else
        status = run_with(&sending, &file, &result, error);
    close(sending.descriptor);
    if (status == ZT_OK)
        *out_result = result;
    return status;
}
