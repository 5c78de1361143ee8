/* The lifetime of multipart uploads. */
#include "s3/write/s3api_upload.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/server.h"
#include "s3/write/s3api_arrival.h"

/* A bit mask of the states that may follow each state. */
static const unsigned next_states[] = {
    [S3API_UPLOAD_OPEN] = 1U << S3API_UPLOAD_COMPLETING,
    [S3API_UPLOAD_COMPLETING] =
        1U << S3API_UPLOAD_OPEN | 1U << S3API_UPLOAD_PUBLISHED | 1U << S3API_UPLOAD_GONE,
    [S3API_UPLOAD_PUBLISHED] = 1U << S3API_UPLOAD_GONE,
    [S3API_UPLOAD_GONE] = 0,
};

/* The lock must be held. */
static void set_state(struct s3api_upload *upload, enum s3api_upload_state state)
{
    assert(next_states[upload->state] >> state & 1);
    upload->state = state;
}

/* Ends the completing. */
static void change_state(struct s3api_upload *upload, enum s3api_upload_state state)
{
    struct waiter *waiters;

    pthread_mutex_lock(&upload->lock);
    assert(upload->state == S3API_UPLOAD_COMPLETING);
    set_state(upload, state);
    waiters = upload->waiters;
    upload->waiters = NULL;
    pthread_mutex_unlock(&upload->lock);
    waiters_wake(waiters);
}

bool s3api_upload_await(struct s3api_upload *upload, struct waiter *waiter)
{
    bool is_completing;

    pthread_mutex_lock(&upload->lock);
    is_completing = upload->state == S3API_UPLOAD_COMPLETING;
    if (is_completing) {
        waiter->next = upload->waiters;
        upload->waiters = waiter;
    }
    pthread_mutex_unlock(&upload->lock);
    return is_completing;
}

enum s3api_upload_state s3api_upload_state(const struct s3api_upload *upload)
{
    return atomic_load(&upload->state);
}

/* --- life --- */

static void free_upload(struct kept_upload *kept)
{
    struct s3api_upload *upload = (struct s3api_upload *)kept;

    assert(upload->arrivals == NULL && upload->ready == NULL && upload->writing == 0);
    assert(upload->waiters == NULL);
    kept_data_destroy(&upload->data);
    s3api_prefix_free(&upload->prefix);
    s3api_parts_free(&upload->parts);
    pthread_cond_destroy(&upload->quiet);
    pthread_mutex_destroy(&upload->record_lock);
    pthread_mutex_destroy(&upload->lock);
    free(upload->terms.metadata);
    free(upload);
}

static int64_t left_ms(struct kept_upload *kept)
{
    struct s3api_upload *upload = (struct s3api_upload *)kept;
    const bool is_published = s3api_upload_state(upload) == S3API_UPLOAD_PUBLISHED;

    return kept_upload_left_ms(kept, is_published
                                         ? KEPT_OUTCOME_S
                                         : config_number(&kept->server->config->upload.expire_s));
}

static bool end_published(struct s3api_upload *upload)
{
    bool is_published;

    pthread_mutex_lock(&upload->lock);
    is_published = upload->state == S3API_UPLOAD_PUBLISHED;
    if (is_published)
        set_state(upload, S3API_UPLOAD_GONE);
    pthread_mutex_unlock(&upload->lock);
    return is_published;
}

/* Parts that have been silent for that long end with the upload. */
static bool end(struct kept_upload *kept)
{
    struct s3api_upload *upload = (struct s3api_upload *)kept;
    struct failure ignored = {.is_set = false};

    if (left_ms(kept) > 0)
        return false;
    if (end_published(upload))
        return true;
    if (!s3api_upload_seize(upload, &ignored))
        return false;
    if (left_ms(kept) > 0) {
        s3api_upload_reopen(upload);
        return false;
    }
    log_write(LOG_LEVEL_INFO, "%s: a multipart upload expired", kept->entry.model);
    change_state(upload, S3API_UPLOAD_GONE);
    return true;
}

const struct kept_kind s3api_upload_kind = {
    .kind = UPLOAD_KIND_MULTIPART,
    .limit_offset = offsetof(struct config, upload.sessions_per_client),
    .open = s3api_upload_files_open,
    .left_ms = left_ms,
    .end = end,
    .free = free_upload,
};

struct s3api_upload *s3api_upload_new(struct server *server, const char *id, struct zt_text key,
                                      struct s3api_terms *terms)
{
    struct s3api_upload *upload = calloc(1, sizeof(*upload));

    assert(key.length < sizeof(upload->kept.entry.model));
    if (upload == NULL) {
        free(terms->metadata);
        terms->metadata = NULL;
        return NULL;
    }
    kept_upload_init(&upload->kept, &s3api_upload_kind, server, id);
    kept_data_init(&upload->data, &upload->kept, S3API_DATA_NAME);
    memcpy(upload->kept.entry.model, key.bytes, key.length);
    upload->kept.entry.is_file = true;
    upload->terms = *terms;
    terms->metadata = NULL;
    pthread_mutex_init(&upload->lock, NULL);
    pthread_mutex_init(&upload->record_lock, NULL);
    pthread_cond_init(&upload->quiet, NULL);
    return upload;
}

/* Makes the folder and the description before adding the upload to the table: expiry removes
 * uploads from the table with their folders. */
static bool make(struct s3api_upload *upload, struct failure *failure)
{
    struct kept_upload *kept = &upload->kept;
    struct zt_error error;

    if (!kept_data_begin(&upload->data, UINT64_MAX, failure))
        return false;
    kept_data_leave(&upload->data);
    if (s3api_upload_describe(upload, &error) != ZT_OK) {
        (void)staging_folder_drop(kept->server->store->staging, kept->entry.id, NULL);
        return failure_of_store(failure, &error);
    }
    return kept_uploads_add(kept) ||
           failure_refuse(
               failure, PROBLEM_RATE_LIMITED,
               "this client already has %u uploads in progress: upload.sessions_per_client",
               (unsigned)config_number(&kept->server->config->upload.sessions_per_client));
}

struct s3api_upload *s3api_upload_begin(struct server *server, struct zt_text key,
                                        const char *client, struct s3api_terms *terms,
                                        struct failure *failure)
{
    char id[UPLOAD_ID_SIZE];
    struct s3api_upload *upload;

    registry_make_id(id);
    upload = s3api_upload_new(server, id, key, terms);
    if (upload == NULL) {
        failure_no_memory(failure, "an upload");
        return NULL;
    }
    snprintf(upload->kept.entry.client, sizeof(upload->kept.entry.client), "%s", client);
    if (make(upload, failure))
        return upload;
    kept_upload_release(upload);
    return NULL;
}

struct s3api_upload *s3api_upload_find(struct server *server, struct zt_text id, struct zt_text key,
                                       bool *out_unreadable)
{
    struct kept_upload *found =
        kept_uploads_find_or_adopt(server->kept, UPLOAD_KIND_MULTIPART, id, out_unreadable);

    if (found == NULL || zt_text_is(key, found->entry.model))
        return (struct s3api_upload *)found;
    kept_upload_release(found);
    return NULL;
}

/* --- one user --- */

void s3api_upload_end_writing(struct s3api_upload *upload)
{
    assert(upload->writing > 0);
    if (--upload->writing == 0)
        pthread_cond_broadcast(&upload->quiet);
}

/* Waits only for bytes that are being written now, never for a client. */
static bool stop_arrivals(struct s3api_upload *upload)
{
    bool is_open;

    pthread_mutex_lock(&upload->lock);
    is_open = upload->state == S3API_UPLOAD_OPEN;
    if (is_open) {
        set_state(upload, S3API_UPLOAD_COMPLETING);
        s3api_arrivals_revoke(upload);
        while (upload->writing > 0)
            pthread_cond_wait(&upload->quiet, &upload->lock);
    }
    pthread_mutex_unlock(&upload->lock);
    return is_open;
}

bool s3api_upload_seize(struct s3api_upload *upload, struct failure *failure)
{
    bool is_closed;

    if (s3api_upload_state(upload) == S3API_UPLOAD_GONE)
        return failure_refuse(failure, PROBLEM_UPLOAD_NOT_FOUND, "the upload is over");
    if (!stop_arrivals(upload)) {
        failure_refuse(failure, PROBLEM_CONFLICT, "the upload is being completed or removed");
        failure->is_passing = true;
        return false;
    }
    /* Parts that are being recorded use the file until then. */
    pthread_mutex_lock(&upload->record_lock);
    pthread_mutex_lock(&upload->lock);
    s3api_arrivals_leave(upload);
    is_closed = kept_data_close(&upload->data);
    pthread_mutex_unlock(&upload->lock);
    pthread_mutex_unlock(&upload->record_lock);
    assert(is_closed);
    return is_closed;
}

void s3api_upload_reopen(struct s3api_upload *upload)
{
    assert(s3api_upload_state(upload) == S3API_UPLOAD_COMPLETING);
    kept_data_reopen(&upload->data);
    change_state(upload, S3API_UPLOAD_OPEN);
}

void s3api_upload_drop(struct s3api_upload *upload)
{
    change_state(upload, S3API_UPLOAD_GONE);
    kept_uploads_drop(&upload->kept);
}

void s3api_upload_finish(struct s3api_upload *upload, const struct published *published)
{
    assert(kept_data_is_closed(&upload->data));
    upload->published = *published;
    kept_upload_touch(&upload->kept);
    change_state(upload, S3API_UPLOAD_PUBLISHED);
    s3api_upload_clean(upload);
    kept_uploads_finish(&upload->kept);
}
