/* What a service honours differs by maker and version, and what it does not honour it ignores
 * without a word. So it is tried, on keys of our own, before anything is published. */
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
/* Keys of probes that are older than this were left by a crash. Clocks cannot differ by that much:
 * the service would refuse the signature. */
#define LEFT_S 3600
/* Of the conditional writes together. */
#define PROBE_MS 20000

struct probe {
    struct s3_store *store;
    char key[S3_KEY_SIZE];
    int64_t by_ms; /* a server that starts waits for it */
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

/* ZT_UNSUPPORTED: the service says that it knows no conditions, or no such request. */
static enum zt_status put(const struct probe *probe, struct bucket *bucket, const char *condition,
                          const char *value)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char sha256[S3_SHA256_SIZE];
    enum zt_status status = s3_hash_bytes(BODY, strlen(BODY), sha256, probe->error);

    if (status != ZT_OK)
        return status;
    if (!bucket_path(bucket, probe->key, path))
        return zt_fail(probe->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the prefix is too long");
    bucket_exchange(bucket, &exchange, "PUT", path);
    exchange.fields[exchange.field_count++] = (struct remote_field){condition, value};
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

/* The condition was looked at, and does not hold. */
static bool is_refused(enum zt_status status)
{
    return status == ZT_STALE || status == ZT_NOT_FOUND;
}

/* Four writes: a new key; the same again as new, and over a version that it has not, which must be
 * refused; and over the version that it has. */
static enum zt_status try_puts(const struct probe *probe, struct bucket *bucket, bool *out_works)
{
    struct object_version first = {.etag = ""};
    enum zt_status status = put(probe, bucket, "if-none-match", "*");

    *out_works = false;
    /* A first try whose answer was lost makes the second one fail. */
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
    struct stored_upload *file;
    char sha256[S3_SHA256_SIZE];
    enum zt_status status = s3_create(&probe->store->base, 1, &file, probe->error);

    if (status != ZT_OK)
        return status;
    status = s3_write_at(file, 0, "p", 1, probe->error);
    if (status == ZT_OK)
        status = s3_hash_bytes("p", 1, sha256, probe->error);
    if (status == ZT_OK) {
        const struct s3_parts parts = {
            .key = probe->key,
            .descriptor = local_upload_of(s3_upload_of(file)->staged)->descriptor,
            .length = 1,
            .part_bytes = 1,
            .sha256 = sha256,
        };

        status = s3_multipart_send(probe->store, &parts, out_multipart, probe->error);
    }
    s3_abandon(file);
    return status;
}

static enum zt_status complete(const struct probe *probe, struct s3_multipart *multipart,
                               enum s3_completion condition, const char *etag)
{
    return s3_multipart_complete(probe->store, NULL, multipart, condition, etag, probe->error);
}

/* The key exists. As new it must be refused, over a version that it has not too; over the version
 * that it has it must be done. *out_done: the upload was completed. */
static void try_completions(const struct probe *probe, struct s3_multipart *multipart,
                            bool *out_done)
{
    struct s3_abilities *abilities = &probe->store->writing->abilities;
    struct object_version version;
    enum zt_status status = complete(probe, multipart, S3_COMPLETE_IF_ABSENT, NULL);

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
    if (!is_done) {
        s3_keeper_abort(store, multipart);
        return;
    }
    s3_multipart_forget(store, multipart);
    s3_multipart_free(multipart);
}

/* A service without conditional completion is used all the same, so that a failure here only means
 * that the condition is not asked for. But as new, an absent key must work. */
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

/* --- what follows from it --- */

static void describe(struct s3_writing *writing, enum s3_mode mode)
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

    snprintf(writing->writes, sizeof(writing->writes),
             "published %s, with %s and %s of large files", how, put, completion);
}

static enum zt_status refuse(struct s3_writing *writing, const char *why)
{
    snprintf(writing->writes, sizeof(writing->writes), "%s", why);
    atomic_store(&writing->mode, S3_MODE_REFUSED);
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
    describe(writing, mode);
    /* The mode comes last: who sees it may read the rest. */
    atomic_store(&writing->mode, mode);
    return ZT_OK;
}

/* Both buckets' keys are removed whatever happened. */
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
