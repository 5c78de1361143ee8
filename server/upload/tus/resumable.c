/* One resumable upload: its lifetime, hashing, durability and publication. */
#include "upload/tus/resumable.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "http/exchange/authorize.h"
#include "store/staging.h"
#include "upload/tus/tus_fields.h"

/* A bit mask of the states that may follow each state. */
static const unsigned next_states[] = {
    [RESUMABLE_RECEIVING] = 1U << RESUMABLE_PUBLISHED | 1U << RESUMABLE_GONE,
    [RESUMABLE_PUBLISHED] = 1U << RESUMABLE_GONE,
    [RESUMABLE_GONE] = 0,
};

enum resumable_state resumable_state(const struct resumable *resumable)
{
    return atomic_load(&resumable->state);
}

bool resumable_is_whole(const struct resumable *resumable)
{
    return atomic_load(&resumable->kept.entry.received) == atomic_load(&resumable->length);
}

static void set_state(struct resumable *resumable, enum resumable_state state)
{
    enum resumable_state before = atomic_exchange(&resumable->state, state);

    assert(state <= RESUMABLE_GONE);
    assert(next_states[before] >> state & 1);
    (void)before;
}

/* --- life --- */

/* Called when no request or job needs the upload any more. */
static void free_resumable(void *owner)
{
    struct resumable *resumable = owner;

    assert(resumable->users == 0);
    staged_file_close(resumable->data);
    staged_file_close(resumable->state_file);
    byte_digests_free(&resumable->digests);
    body_follower_destroy(&resumable->follower);
    pthread_mutex_destroy(&resumable->sync_lock);
    pthread_mutex_destroy(&resumable->files_lock);
    claim_free(&resumable->claim);
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
        free(resumable->texts[i]);
    free(resumable);
}

/* The follower counts the hashing jobs. This releases the reference that the table and the requests
 * share. */
static void release_follower(struct kept_upload *upload)
{
    assert(atomic_load(&upload->references) == 0 && !upload->is_listed);
    body_follower_release(&((struct resumable *)upload)->follower);
}

static int64_t left_ms(struct kept_upload *upload)
{
    const bool is_published = resumable_state((struct resumable *)upload) == RESUMABLE_PUBLISHED;

    return kept_upload_left_ms(
        upload,
        is_published ? KEPT_OUTCOME_S : config_number(&upload->server->config->upload.expire_s));
}

static bool end(struct kept_upload *upload)
{
    struct resumable *resumable = (struct resumable *)upload;

    if (claim_take(&resumable->claim) == 0)
        return false;
    if (resumable_state(resumable) == RESUMABLE_RECEIVING)
        log_write(LOG_LEVEL_INFO, "upload %s: expired", upload->entry.id);
    set_state(resumable, RESUMABLE_GONE);
    return true;
}

const struct kept_kind resumable_kind = {
    .kind = UPLOAD_KIND_RESUMABLE,
    .limit_offset = offsetof(struct config, upload.sessions_per_client),
    .open = resumable_files_open,
    .left_ms = left_ms,
    .end = end,
    .free = release_follower,
};

/* Returns the digest of the whole file from the creation; empty if it had none. */
static struct digest_field stated_digest(const struct resumable *resumable)
{
    const char *text = resumable->texts[RESUMABLE_REPR_DIGEST];
    struct digest_field field = {0};

    return text != NULL && digest_field_parse(text, &field) ? field : (struct digest_field){0};
}

static enum resumable_role role_of(const char *concat)
{
    const char *urls;

    if (concat == NULL)
        return RESUMABLE_WHOLE;
    return tus_concat_parse(concat, &urls) == TUS_CONCAT_PART ? RESUMABLE_PART : RESUMABLE_FINAL;
}

/* The lock of the files must be held. While a worker follows the bytes, the files are closed at the
 * end of its job. The kernel reports a failed write once per open file, so after a failure the
 * files stay open. */
static void close_unused(struct resumable *resumable)
{
    assert((resumable->data == NULL) || (resumable->state_file != NULL));
    if (resumable->users > 0 || resumable->data == NULL)
        return;
    if (atomic_load(&resumable->has_failed_write))
        staged_file_return_space(resumable->data, UINT64_MAX);
    else if (!body_follower_is_busy(&resumable->follower))
        resumable_files_close(resumable);
}

static void rest(void *owner)
{
    struct resumable *resumable = owner;

    pthread_mutex_lock(&resumable->files_lock);
    close_unused(resumable);
    pthread_mutex_unlock(&resumable->files_lock);
}

void resumable_rest(struct resumable *resumable)
{
    assert(atomic_load(&resumable->kept.references) > 0);
    pthread_mutex_lock(&resumable->files_lock);
    if (resumable->data == NULL)
        resumable_files_close(resumable);
    else
        close_unused(resumable);
    pthread_mutex_unlock(&resumable->files_lock);
}

bool resumable_enter(struct resumable *resumable, struct failure *failure)
{
    enum zt_status status = ZT_OK;
    struct zt_error error;

    pthread_mutex_lock(&resumable->files_lock);
    if (resumable->data == NULL && resumable_state(resumable) == RESUMABLE_RECEIVING)
        status = resumable_files_reopen(resumable, &error);
    /* Another request has removed it meanwhile, with its files. */
    if (status != ZT_OK && resumable_state(resumable) == RESUMABLE_GONE)
        status = ZT_OK;
    resumable->users += status == ZT_OK;
    pthread_mutex_unlock(&resumable->files_lock);
    return status == ZT_OK || failure_of_store(failure, &error);
}

void resumable_leave(struct resumable *resumable)
{
    pthread_mutex_lock(&resumable->files_lock);
    assert(resumable->users > 0);
    resumable->users--;
    close_unused(resumable);
    pthread_mutex_unlock(&resumable->files_lock);
}

struct resumable *resumable_new(struct server *server, const char *id, char *texts[RESUMABLE_TEXTS])
{
    struct resumable *resumable = calloc(1, sizeof(*resumable));
    struct body_follower *follower;

    if (resumable == NULL) {
        for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
            free(texts[i]);
        return NULL;
    }
    kept_upload_init(&resumable->kept, &resumable_kind, server, id);
    memcpy(resumable->texts, texts, sizeof(resumable->texts));
    resumable->role = role_of(texts[RESUMABLE_CONCAT]);
    resumable->kept.entry.is_file = resumable->role != RESUMABLE_PART &&
                                    texts[RESUMABLE_METADATA] != NULL &&
                                    tus_metadata_is_of_file(texts[RESUMABLE_METADATA]);
    pthread_mutex_init(&resumable->sync_lock, NULL);
    pthread_mutex_init(&resumable->files_lock, NULL);
    claim_init(&resumable->claim);
    follower = &resumable->follower;
    body_follower_init(follower, resumable, free_resumable);
    follower->workers = server->workers;
    follower->rested = rest;
    follower->sink = (struct zt_sink){byte_digests_take, &resumable->digests};
    if (byte_digests_init(&resumable->digests, stated_digest(resumable).has_sha512, false))
        return resumable;
    kept_upload_release(resumable);
    return NULL;
}

void resumable_touch(struct resumable *resumable)
{
    if (resumable_state(resumable) == RESUMABLE_RECEIVING)
        kept_upload_touch(&resumable->kept);
}

time_t resumable_expires(struct resumable *resumable)
{
    return kept_upload_time_in(left_ms(&resumable->kept));
}

void resumable_end_claim(struct resumable *resumable, uint64_t *claim)
{
    if (*claim != 0 && resumable_state(resumable) != RESUMABLE_GONE)
        claim_end(&resumable->claim, *claim);
    *claim = 0;
}

void resumable_drop(struct resumable *resumable)
{
    assert(resumable_state(resumable) != RESUMABLE_GONE);
    set_state(resumable, RESUMABLE_GONE);
    kept_uploads_drop(&resumable->kept);
}

/* All files must be open, or all bytes durable. */
static bool cut_to_durable(struct resumable *resumable)
{
    uint64_t durable;
    bool is_cut;

    pthread_mutex_lock(&resumable->sync_lock);
    durable = atomic_load(&resumable->durable);
    assert(durable <= atomic_load(&resumable->kept.entry.received));
    is_cut = atomic_load(&resumable->kept.entry.received) == durable ||
             staged_file_truncate(resumable->data, durable, NULL) == ZT_OK;
    if (is_cut)
        set_state(resumable, RESUMABLE_GONE);
    pthread_mutex_unlock(&resumable->sync_lock);
    return is_cut;
}

void resumable_put_down(struct resumable *resumable)
{
    struct kept_upload *kept = &resumable->kept;

    if (!cut_to_durable(resumable)) {
        resumable_drop(resumable);
        return;
    }
    kept_uploads_remove(kept);
    kept_uploads_reopen(kept);
}

/* --- bytes --- */

void resumable_set_length(struct resumable *resumable, uint64_t length)
{
    assert(atomic_load(&resumable->length) == RESUMABLE_UNKNOWN);
    assert(length >= atomic_load(&resumable->kept.entry.received));
    /* Stored first: a thread that sees the length must also see that it needs to be recorded. */
    atomic_store(&resumable->is_length_stated, true);
    atomic_store(&resumable->length, length);
    atomic_store(&resumable->kept.entry.length, length);
}

static void add_received(struct resumable *resumable, uint64_t length)
{
    uint64_t received = atomic_fetch_add(&resumable->kept.entry.received, length) + length;

    assert(atomic_load(&resumable->durable) <= atomic_load(&resumable->kept.entry.received));
    assert(received <= atomic_load(&resumable->length));
    assert(resumable_state(resumable) != RESUMABLE_PUBLISHED);
    (void)received;
    resumable_touch(resumable);
}

/* The digest of a part is not used: parts are hashed when they are joined. */
void resumable_advance(struct resumable *resumable, uint64_t length)
{
    add_received(resumable, length);
    if (resumable->role != RESUMABLE_PART)
        body_follower_advance(&resumable->follower, length);
}

void resumable_take(struct resumable *resumable, const struct body_piece *piece)
{
    add_received(resumable, piece->length);
    if (resumable->role != RESUMABLE_PART)
        body_follower_take(&resumable->follower, piece);
}

/* Without a descriptor, the sync was not attempted. */
static enum zt_status sync_data(struct resumable *resumable, struct zt_error *error)
{
    enum zt_status status;

    assert(resumable->data != NULL);
    status = staged_file_sync(resumable->data, error);
    if (status != ZT_OK && problem_of_write(error) != PROBLEM_OVERLOADED)
        atomic_store(&resumable->has_failed_write, true);
    return status;
}

/* Syncs the bytes first, then the number of durable bytes. If only the number cannot be written,
 * its file is opened again for the next try. A sync that succeeds after a failed write covers every
 * byte counted before it; another write may fail at the same time. */
static enum zt_status sync_and_note(struct resumable *resumable, struct zt_error *error)
{
    uint64_t received;
    enum zt_status status;

    assert(resumable->data != NULL && resumable->state_file != NULL);
    atomic_store(&resumable->has_failed_write, false);
    received = atomic_load(&resumable->kept.entry.received);
    assert(atomic_load(&resumable->durable) <= received);
    if (received == atomic_load(&resumable->durable))
        return ZT_OK;
    status = sync_data(resumable, error);
    if (status == ZT_OK)
        status = resumable_files_note(resumable, received, error);
    if (status == ZT_OK)
        atomic_store(&resumable->durable, received);
    return status;
}

/* Records the length before bytes up to it are reported, because publication may follow. */
static enum zt_status note_length(struct resumable *resumable, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    if (atomic_load(&resumable->length) == RESUMABLE_UNKNOWN ||
        !atomic_load(&resumable->is_length_stated) || resumable->is_length_durable)
        return ZT_OK;
    status = resumable_files_note_length(resumable, error);
    resumable->is_length_durable = status == ZT_OK;
    return status;
}

static enum zt_status make_durable(struct resumable *resumable, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    pthread_mutex_lock(&resumable->sync_lock);
    if (resumable->data != NULL && resumable_state(resumable) == RESUMABLE_RECEIVING) {
        assert(resumable->state_file != NULL);
        status = note_length(resumable, error);
        if (status == ZT_OK)
            status = sync_and_note(resumable, error);
    }
    pthread_mutex_unlock(&resumable->sync_lock);
    return status;
}

enum zt_status resumable_make_durable(struct resumable *resumable, struct zt_error *error)
{
    struct failure failure = {.is_set = false};
    enum zt_status status;

    if (!resumable_enter(resumable, &failure)) {
        *error = failure.error;
        return error->status;
    }
    status = make_durable(resumable, error);
    resumable_leave(resumable);
    return status;
}

/* --- publication --- */

static bool hash_whole(struct resumable *resumable, struct failure *failure)
{
    struct zt_error error;

    assert(resumable->role != RESUMABLE_PART);
    if (resumable->is_hashed)
        return true;
    if (body_follower_finish(&resumable->follower, &error) != ZT_OK)
        return failure_set(failure, PROBLEM_INTERNAL, &error);
    assert(body_follower_received(&resumable->follower) == atomic_load(&resumable->length));
    byte_digests_finish(&resumable->digests);
    memcpy(resumable->published.sha256, resumable->digests.sha256.bytes,
           sizeof(resumable->published.sha256));
    resumable->is_hashed = true;
    return true;
}

static bool check_digest(const struct resumable *resumable, struct failure *failure)
{
    struct digest_field stated = stated_digest(resumable);

    assert(resumable->is_hashed);
    return byte_digests_agree(&resumable->digests, &stated) ||
           failure_refuse(failure, PROBLEM_DIGEST_MISMATCH,
                          "the file does not match the digest in Repr-Digest");
}

static bool note_end(struct resumable *resumable, struct failure *failure)
{
    struct zt_error error;

    return resumable_files_note_end(resumable, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

/* Ends the files: their bytes have become a model, or part of one. Later HEADs need not sync
 * anything. */
static void end_files(struct resumable *resumable)
{
    pthread_mutex_lock(&resumable->sync_lock);
    pthread_mutex_lock(&resumable->files_lock);
    assert(resumable->users > 0 && resumable->is_hashed);
    resumable->data = NULL;
    staged_file_close(resumable->state_file);
    resumable->state_file = NULL;
    kept_upload_touch(&resumable->kept);
    set_state(resumable, RESUMABLE_PUBLISHED);
    pthread_mutex_unlock(&resumable->files_lock);
    pthread_mutex_unlock(&resumable->sync_lock);
}

bool resumable_report(struct resumable *resumable, struct failure *failure)
{
    bool is_complete;

    assert(resumable_state(resumable) != RESUMABLE_RECEIVING);
    pthread_mutex_lock(&resumable->sync_lock);
    is_complete = remains_fail(&resumable->published.remains, "published", failure);
    pthread_mutex_unlock(&resumable->sync_lock);
    return is_complete;
}

typedef void complete_function(struct server *server, const char *name,
                               struct published *published);

static bool complete(struct resumable *resumable, complete_function *function,
                     struct failure *failure)
{
    assert(resumable_state(resumable) != RESUMABLE_RECEIVING);
    if (resumable->role == RESUMABLE_PART)
        return true;
    pthread_mutex_lock(&resumable->sync_lock);
    function(resumable->kept.server, resumable->kept.entry.model, &resumable->published);
    pthread_mutex_unlock(&resumable->sync_lock);
    return resumable_report(resumable, failure);
}

bool resumable_complete(struct resumable *resumable, struct failure *failure)
{
    return complete(resumable, publication_complete, failure);
}

bool resumable_settle(struct resumable *resumable, struct failure *failure)
{
    return complete(resumable, publication_settle, failure);
}

static bool run_publication(struct resumable *resumable, const struct request *request,
                            struct failure *failure)
{
    struct publication publication = {
        .server = resumable->kept.server,
        .stored = resumable->data,
        .name = resumable->kept.entry.model,
        .is_file = resumable->kept.entry.is_file,
        .preconditions = {.if_match = resumable->texts[RESUMABLE_IF_MATCH],
                          .if_none_match = resumable->texts[RESUMABLE_IF_NONE_MATCH],
                          .if_unmodified_since = resumable->texts[RESUMABLE_IF_UNMODIFIED_SINCE]},
        .covers = authorize_filter(request),
        .client = request->client,
        .published = resumable->published,
    };

    assert(resumable->data != NULL && resumable->is_hashed);
    if (!publication_run(&publication, failure))
        return false;
    resumable->published = publication.published;
    end_files(resumable);
    return true;
}

/* Returns true if another try might publish the same bytes under the same conditions: the disk may
 * have space again, descriptors may be free, a folder may no longer be in the way, or the object
 * store may be back. */
static bool may_succeed_later(enum problem problem)
{
    return problem == PROBLEM_INTERNAL || problem == PROBLEM_INSUFFICIENT_STORAGE ||
           problem == PROBLEM_READ_ONLY || problem == PROBLEM_CONFLICT ||
           problem == PROBLEM_OVERLOADED || problem == PROBLEM_STORE_UNAVAILABLE ||
           problem == PROBLEM_NOT_IMPLEMENTED;
}

/* Returns true if one of the upload's own files may have failed. */
static bool is_of_disk(enum problem problem)
{
    return problem == PROBLEM_INTERNAL || problem == PROBLEM_INSUFFICIENT_STORAGE;
}

static bool publish(struct resumable *resumable, const struct request *request,
                    struct failure *failure)
{
    assert(resumable->users > 0);
    assert(resumable->role != RESUMABLE_PART);
    assert(resumable_state(resumable) == RESUMABLE_RECEIVING);
    assert(atomic_load(&resumable->durable) == atomic_load(&resumable->length));
    if (hash_whole(resumable, failure) && check_digest(resumable, failure) &&
        note_end(resumable, failure) && run_publication(resumable, request, failure)) {
        kept_uploads_finish(&resumable->kept);
        metric_add(METRIC_PUBLISHED_RESUMABLE, 1);
        return true;
    }
    metric_add(METRIC_FAILED_RESUMABLE, 1);
    if (!may_succeed_later(failure->problem))
        resumable_drop(resumable);
    else if (resumable->role == RESUMABLE_WHOLE && is_of_disk(failure->problem) &&
             !store_needs_claims(resumable->kept.server->store))
        resumable_put_down(resumable);
    return false;
}

bool resumable_publish(struct resumable *resumable, const struct request *request,
                       struct failure *failure)
{
    bool is_published;

    if (!resumable_enter(resumable, failure))
        return false;
    is_published = publish(resumable, request, failure);
    resumable_leave(resumable);
    return is_published;
}

/* Treats the part like a published upload. Its missing data after a noted end is its outcome, which
 * is kept for a client that repeats its request because the final upload's response was lost. */
static void use_up(struct resumable *part)
{
    struct staged_file *data = part->data;
    struct zt_error error;

    assert(part->role == RESUMABLE_PART && part->is_hashed && part->data != NULL);
    if (resumable_files_note_end(part, &error) != ZT_OK ||
        resumable_files_remove_data(part, &error) != ZT_OK) {
        log_write(LOG_LEVEL_WARN, "upload %s: its outcome cannot be saved: %s", part->kept.entry.id,
                  error.message);
        resumable_drop(part);
        return;
    }
    end_files(part);
    staged_file_close(data);
    kept_uploads_finish(&part->kept);
}

void resumable_use_up(struct resumable *part, const uint8_t file_sha256[32])
{
    struct failure ignored = {.is_set = false};

    assert(resumable_state(part) == RESUMABLE_RECEIVING);
    assert(part->role == RESUMABLE_PART && resumable_is_whole(part));
    memcpy(part->published.sha256, file_sha256, sizeof(part->published.sha256));
    part->is_hashed = true;
    if (!resumable_enter(part, &ignored)) {
        resumable_drop(part);
        return;
    }
    use_up(part);
    resumable_leave(part);
}
