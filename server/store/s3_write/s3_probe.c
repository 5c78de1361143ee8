/* Services support different features, depending on maker and version, and silently ignore the
 * others. So each feature is tried with our own keys before anything is published. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/s3_write/s3_multipart.h"
#include "store/store_local.h"

/* An ETag that no object has. */
#define OTHER_ETAG "00000000000000000000000000000000"
/* Probe keys older than this are leftovers of a crash. Clocks cannot differ by this much: the
 * service would refuse the signature. */
#define LEFT_S 3600
/* Time limit of all conditional writes together. */
#define PROBE_MS 20000

struct probe {
    struct s3_store *store;
    char key[S3_KEY_SIZE];
    int64_t by_ms; /* deadline: the server waits for the probe when it starts */
    struct zt_error *error;
};

static void set_key(struct probe *probe)
{
    char nonce[S3_NONCE_SIZE];

    s3_nonce(nonce);
    snprintf(probe->key, sizeof(probe->key), "%s%s", S3_PROBES_PREFIX, nonce);
}

/* --- PUT --- */

#define BODY "probe"

/* Returns ZT_UNSUPPORTED if the service says that it does not support conditions, or this
 * request. */
static enum zt_status put(const struct probe *probe, struct bucket *bucket, const char *condition,
                          const char *value)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char sha256[BUCKET_SHA256_SIZE];
    enum zt_status status = bucket_sha256(BODY, strlen(BODY), sha256, probe->error);

    if (status != ZT_OK)
        return status;
    if (!bucket_path(bucket, probe->key, path))
        return zt_fail(probe->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the prefix is too long");
    bucket_exchange(bucket, &exchange, "PUT", path);
    remote_exchange_add(&exchange, condition, value);
    exchange.body = REMOTE_BODY_MEMORY;
    exchange.body_bytes = BODY;
    exchange.body_length = strlen(BODY);
    exchange.body_sha256 = sha256;
    exchange.body_most = BUCKET_REPLY_MOST;
    status = bucket_run(bucket, METRIC_STORE_WRITE, &exchange, probe->by_ms, probe->error);
    if (status == ZT_UNAVAILABLE && exchange.status == ZT_OK)
        status = ZT_UNSUPPORTED;
    remote_exchange_free(&exchange);
    return status;
}

/* Returns true if the condition was evaluated and did not hold. */
static bool is_refused(enum zt_status status)
{
    return status == ZT_STALE || status == ZT_NOT_FOUND;
}

/* Makes four writes. It creates a new key; then it tries to create it again, and to replace a
 * version that the key does not have, which the service must refuse both times; and last it
 * replaces the current version. */
static enum zt_status try_puts(const struct probe *probe, struct bucket *bucket, bool *out_works)
{
    struct object_version first = {.etag = ""};
    enum zt_status status = put(probe, bucket, "if-none-match", "*");

    *out_works = false;
    /* If the response to the first try was lost, the retry fails. */
    if (status != ZT_OK && status != ZT_STALE)
        return status;
    status = bucket_head(bucket, probe->key, probe->by_ms, &first, probe->error);
    if (status != ZT_OK)
        return status;
    status = put(probe, bucket, "if-none-match", "*");
    if (is_refused(status))
        status = put(probe, bucket, "if-match", OTHER_ETAG);
    if (!is_refused(status))
        return status;
    status = put(probe, bucket, "if-match", first.etag);
    *out_works = status == ZT_OK;
    return is_refused(status) ? ZT_OK : status;
}

/* --- completing --- */

static enum zt_status send_one(const struct probe *probe, struct s3_multipart **out_multipart)
{
    struct staged_file *file;
    char sha256[BUCKET_SHA256_SIZE];
    enum zt_status status = staging_create(probe->store->base.staging, 1, &file, probe->error);

    if (status != ZT_OK)
        return status;
    status = staged_file_write_at(file, 0, "p", 1, probe->error);
    if (status == ZT_OK)
        status = bucket_sha256("p", 1, sha256, probe->error);
    if (status == ZT_OK) {
        const struct s3_parts parts = {
            .key = probe->key,
            .descriptor = file->descriptor,
            .length = 1,
            .part_bytes = 1,
            .sha256 = sha256,
        };

        status = s3_multipart_send(probe->store, &parts, out_multipart, probe->error);
    }
    staged_file_close(file);
    return status;
}

static enum zt_status complete(const struct probe *probe, struct s3_multipart *multipart,
                               enum s3_completion condition, const char *etag)
{
    return s3_multipart_complete(probe->store, NULL, multipart, condition, etag, probe->error);
}

/* The key exists. Completing as a new key, or over a version that it does not have, must be
 * refused; completing over its current version must succeed. *out_done: the upload was
 * completed. */
static void try_completions(const struct probe *probe, struct s3_multipart *multipart,
                            bool *out_done)
{
    struct s3_abilities *abilities = &probe->store->writing->abilities;
    struct object_version version;
    enum zt_status status = complete(probe, multipart, S3_COMPLETE_IF_ABSENT, NULL);

    assert(multipart->id != NULL);
    *out_done = status == ZT_OK;
    abilities->complete_if_absent = is_refused(status);
    if (!is_refused(status))
        return;
    status = complete(probe, multipart, S3_COMPLETE_IF_VERSION, OTHER_ETAG);
    *out_done = status == ZT_OK;
    if (!is_refused(status) || bucket_head(&probe->store->bucket, probe->key, BUCKET_USUAL_TIME,
                                           &version, probe->error) != ZT_OK)
        return;
    status = complete(probe, multipart, S3_COMPLETE_IF_VERSION, version.etag);
    *out_done = abilities->complete_if_version = status == ZT_OK;
}

static void end_upload(struct s3_store *store, struct s3_multipart *multipart, bool is_done)
{
    assert(multipart->id != NULL);
    if (!is_done) {
        s3_keeper_abort(store, multipart);
        return;
    }
    s3_multipart_drop(store, multipart);
    s3_multipart_free(multipart);
}

/* A failure here only means that completions are sent without the condition, because services
 * without conditional completion are supported. The condition is not used unless creating an absent
 * key with it works. */
static void try_multiparts(struct probe *probe)
{
    struct s3_abilities *abilities = &probe->store->writing->abilities;
    struct s3_multipart *multipart;
    bool is_done;

    set_key(probe);
    if (send_one(probe, &multipart) != ZT_OK)
        return;
    is_done = complete(probe, multipart, S3_COMPLETE_IF_ABSENT, NULL) == ZT_OK;
    end_upload(probe->store, multipart, is_done);
    if (!is_done)
        return;
    if (send_one(probe, &multipart) == ZT_OK) {
        try_completions(probe, multipart, &is_done);
        end_upload(probe->store, multipart, is_done);
    }
    if (bucket_delete(&probe->store->bucket, probe->key, BUCKET_USUAL_TIME, probe->error) != ZT_OK)
        abilities->complete_if_absent = abilities->complete_if_version = false;
}

/* --- the result --- */

void s3_mode_settle(struct s3_writing *writing, enum s3_mode mode, enum log_level level,
                    const char *words)
{
    assert(mode != S3_MODE_UNKNOWN && atomic_load(&writing->mode) == S3_MODE_UNKNOWN);
    snprintf(writing->writes, sizeof(writing->writes), "%s", words);
    /* The mode is stored last: a thread that sees it may read the rest. */
    atomic_store(&writing->mode, mode);
    log_write(level, "uploads: %s", writing->writes);
}

const char *s3_mode_words(const struct s3_writing *writing)
{
    return atomic_load(&writing->mode) != S3_MODE_UNKNOWN
               ? writing->writes
               : "how uploads are published is unknown until the store has been reached";
}

static void settle(struct s3_writing *writing, enum s3_mode mode)
{
    const struct s3_abilities *abilities = &writing->abilities;
    const char *how =
        mode == S3_MODE_ALONE ? "by this server alone (s3.single_writer)" : "under claims";
    const char *put = abilities->put ? "conditional writes" : "unconditional writes";
    const char *completion = abilities->complete_if_absent && abilities->complete_if_version
                                 ? "conditional completion"
                             : abilities->complete_if_absent || abilities->complete_if_version
                                 ? "partly conditional completion"
                                 : "unconditional completion";
    char words[sizeof(writing->writes)];

    assert(mode == S3_MODE_ALONE || mode == S3_MODE_CLAIMS);
    snprintf(words, sizeof(words), "published %s, with %s and %s of large files", how, put,
             completion);
    s3_mode_settle(writing, mode, LOG_LEVEL_INFO, words);
}

static enum zt_status refuse(struct s3_writing *writing, const char *why)
{
    s3_mode_settle(writing, S3_MODE_REFUSED, LOG_LEVEL_ERROR, why);
    return ZT_OK;
}

static enum zt_status decide(struct s3_store *store, bool claims_work)
{
    struct s3_writing *writing = store->writing;
    const enum s3_mode mode = store->config->s3.single_writer ? S3_MODE_ALONE : S3_MODE_CLAIMS;

    if (mode == S3_MODE_CLAIMS && !claims_work)
        return refuse(writing, store->config->s3.claims_bucket[0] != '\0'
                                   ? "the bucket of claims does not honour conditional writes "
                                     "(is it versioned?)"
                                   : "the bucket does not honour conditional writes: set "
                                     "s3.claims_bucket or s3.single_writer");
    settle(writing, mode);
    return ZT_OK;
}

/* The keys in both buckets are removed, whether or not the probe succeeded. */
static enum zt_status try_all(struct probe *probe, bool *out_claims)
{
    struct s3_store *store = probe->store;
    struct s3_writing *writing = store->writing;
    const bool other = store->config->s3.claims_bucket[0] != '\0';
    enum zt_status status = try_puts(probe, &store->bucket, &writing->abilities.put);

    *out_claims = writing->abilities.put;
    (void)bucket_delete(&store->bucket, probe->key, BUCKET_USUAL_TIME, NULL);
    if (status == ZT_UNSUPPORTED)
        status = ZT_OK;
    if (status == ZT_OK && other && !store->config->s3.single_writer) {
        status = try_puts(probe, &store->claims, out_claims);
        (void)bucket_delete(&store->claims, probe->key, BUCKET_USUAL_TIME, NULL);
    }
    return status == ZT_UNSUPPORTED ? ZT_OK : status;
}

enum zt_status s3_probe(struct s3_store *store, struct zt_error *error)
{
    struct zt_error own;
    struct probe probe = {
        .store = store, .by_ms = clock_ms() + PROBE_MS, .error = error != NULL ? error : &own};
    struct s3_writing *writing = store->writing;
    bool claims = false;
    enum zt_status status;

    assert(atomic_load(&writing->mode) == S3_MODE_UNKNOWN);
    set_key(&probe);
    writing->abilities = (struct s3_abilities){.put = false};
    status = try_all(&probe, &claims);
    if (status == ZT_ARGUMENT)
        return refuse(writing, probe.error->message);
    if (status != ZT_OK)
        return status;
    if (claims || store->config->s3.single_writer)
        try_multiparts(&probe);
    return decide(store, claims);
}

/* --- leftovers --- */

static bool sweep_one(void *context, const struct listed_object *object)
{
    struct s3_store *store = context;
    const int64_t now_s = clock_wall_ns() / CLOCK_NS_PER_S;

    if (strlen(object->key) == strlen(S3_PROBES_PREFIX) + S3_NONCE_SIZE - 1 &&
        object->modified_s > 0 && now_s - object->modified_s > LEFT_S)
        (void)bucket_delete(&store->bucket, object->key, BUCKET_USUAL_TIME, NULL);
    return true;
}

void s3_probes_sweep(struct s3_store *store)
{
    (void)bucket_list(&store->bucket, S3_PROBES_PREFIX, BUCKET_USUAL_TIME, sweep_one, store, NULL);
}
