#include "s3/write/s3api_prefix.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/server.h"
#include "digests/hash_source.h"
#include "s3/write/s3api_upload.h"
#include "store/staging.h"
#include "zt/digest.h"

/* The most that one job reads, because other jobs wait for the worker. */
#define JOB_BYTES ((uint64_t)8 << 20)

void s3api_prefix_free(struct s3api_prefix *prefix)
{
    assert(!prefix->is_running);
    zt_hasher_free(prefix->hasher);
    prefix->hasher = NULL;
}

/* Gives the bytes up to end to the hasher. */
static enum zt_status hash_to(struct s3api_prefix *prefix, struct staged_file *file, uint64_t end,
                              struct zt_error *error)
{
    struct zt_source *source;
    enum zt_status status = staged_file_read_back(file, &source, error);

    if (status == ZT_OK)
        status = hash_source(source, &prefix->hashed, end, prefix->hasher, error);
    return status;
}

/* Hashes a few pieces while it counts as a writer, so that the upload is not seized meanwhile.
 * Ignores failures: they occur again when the upload is completed, which reports them. */
static void hash_some(struct s3api_upload *upload, uint64_t target)
{
    struct s3api_prefix *prefix = &upload->prefix;
    struct failure ignored = {.is_set = false};
    const uint64_t most = prefix->hashed + JOB_BYTES;
    struct zt_error error;

    assert(target > prefix->hashed);
    if (prefix->hasher == NULL && zt_hasher_new(ZT_DIGEST_SHA256, &prefix->hasher) != ZT_OK)
        return;
    if (!kept_data_enter(&upload->data, &ignored))
        return;
    (void)hash_to(prefix, upload->data.file, target < most ? target : most, &error);
    kept_data_leave(&upload->data);
}

/* The lock must be held. */
static bool may_hash(const struct s3api_upload *upload)
{
    const struct s3api_prefix *prefix = &upload->prefix;

    return upload->state == S3API_UPLOAD_OPEN && !prefix->is_stale &&
           prefix->hashed < prefix->target;
}

static void submit(struct s3api_upload *upload)
{
    upload->prefix.job.client = upload->prefix.client;
    workers_submit(upload->kept.server->workers, &upload->prefix.job);
}

/* Returns true if the job may hash up to *out_target. It then counts as a writer. */
static bool begin_run(struct s3api_upload *upload, uint64_t *out_target)
{
    bool may_run;

    pthread_mutex_lock(&upload->lock);
    assert(upload->prefix.is_running);
    may_run = may_hash(upload);
    upload->prefix.is_running = may_run;
    upload->writing += may_run;
    *out_target = upload->prefix.target;
    pthread_mutex_unlock(&upload->lock);
    return may_run;
}

/* Returns true if the job was submitted again. */
static bool end_run(struct s3api_upload *upload, bool has_advanced)
{
    bool is_running;

    pthread_mutex_lock(&upload->lock);
    is_running = has_advanced && may_hash(upload);
    upload->prefix.is_running = is_running;
    if (is_running)
        submit(upload);
    s3api_upload_end_writing(upload);
    pthread_mutex_unlock(&upload->lock);
    return is_running;
}

static void run_job(struct job *job)
{
    struct s3api_upload *upload =
        (struct s3api_upload *)((char *)job - offsetof(struct s3api_upload, prefix.job));
    uint64_t target;

    if (begin_run(upload, &target)) {
        const uint64_t before = upload->prefix.hashed;

        hash_some(upload, target);
        if (end_run(upload, upload->prefix.hashed > before))
            return;
    }
    kept_upload_release(upload);
}

/* Extends the target over the parts that follow it in their places. */
static void find_target(struct s3api_upload *upload)
{
    struct s3api_prefix *prefix = &upload->prefix;
    const uint64_t unit = upload->placement.unit;
    const struct s3api_part *part;

    if (unit == 0)
        return;
    assert(prefix->target % unit == 0);
    while ((part = s3api_parts_find(&upload->parts, (uint32_t)(prefix->target / unit) + 1)) !=
               NULL &&
           part->version == 0 && part->length == unit)
        prefix->target += unit;
}

void s3api_prefix_advance(struct s3api_upload *upload)
{
    struct s3api_prefix *prefix = &upload->prefix;

    if (prefix->is_stale)
        return;
    find_target(upload);
    if (prefix->is_running || prefix->target < prefix->hashed + JOB_BYTES / 8 || !may_hash(upload))
        return;
    prefix->is_running = true;
    prefix->job.run = run_job;
    kept_upload_hold(&upload->kept);
    submit(upload);
}

void s3api_prefix_note_replaced(struct s3api_upload *upload, uint32_t number)
{
    const uint64_t unit = upload->placement.unit;

    assert(number >= 1);
    if (unit != 0 && (number - 1) * unit < upload->prefix.target)
        upload->prefix.is_stale = true;
}

static bool start_over(struct s3api_prefix *prefix)
{
    zt_hasher_free(prefix->hasher);
    prefix->hasher = NULL;
    prefix->hashed = 0;
    return zt_hasher_new(ZT_DIGEST_SHA256, &prefix->hasher) == ZT_OK;
}

bool s3api_prefix_finish(struct s3api_upload *upload, struct staged_file *file, uint64_t length,
                         bool may_continue, uint8_t out_sha256[32], struct failure *failure)
{
    struct s3api_prefix *prefix = &upload->prefix;
    struct zt_digest digest;
    struct zt_error error;
    enum zt_status status;

    if (!may_continue || prefix->is_stale || prefix->hasher == NULL || prefix->hashed > length)
        if (!start_over(prefix))
            return failure_no_memory(failure, "hashing");
    status = hash_to(prefix, file, length, &error);
    /* A finished hasher cannot be continued, so another attempt starts over. */
    prefix->is_stale = true;
    if (status != ZT_OK)
        return failure_of_store(failure, &error);
    assert(prefix->hashed == length);
    zt_hasher_finish(prefix->hasher, &digest);
    memcpy(out_sha256, digest.bytes, 32);
    return true;
}
