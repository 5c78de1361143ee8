/* One resumable upload: its lifetime, hashing, durability and publication. */
#include "upload/tus/resumable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "upload/tus/tus_fields.h"

/* The states that may follow each, bit by bit. */
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

    assert(next_states[before] >> state & 1);
    (void)before;
}

/* --- life --- */

/* Called when neither requests nor jobs need the upload any more. */
static void free_resumable(void *owner)
{
    struct resumable *resumable = owner;
    const struct store_ops *ops = resumable->kept.server->store->ops;

    ops->abandon(resumable->data);
    ops->abandon(resumable->state_file);
    byte_digests_free(&resumable->digests);
    body_follower_destroy(&resumable->follower);
    pthread_mutex_destroy(&resumable->sync_lock);
    claim_free(&resumable->claim);
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
        free(resumable->texts[i]);
    free(resumable);
}

/* The jobs that hash are counted by the follower; this releases what kept and requests had. */
static void release_follower(struct kept_upload *upload)
{
    body_follower_release(&((struct resumable *)upload)->follower);
}

static time_t expires(struct kept_upload *upload)
{
    return resumable_expires((struct resumable *)upload);
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
    .open = resumable_files_open,
    .expires = expires,
    .end = end,
    .free = release_follower,
};

/* The digest of the whole file that creation stated; empty if it stated none. */
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
    pthread_mutex_init(&resumable->sync_lock, NULL);
    claim_init(&resumable->claim);
    follower = &resumable->follower;
    body_follower_init(follower, resumable, free_resumable);
    follower->workers = server->workers;
    follower->store = server->store;
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
    time_t active = atomic_load(&resumable->kept.entry.active);

    return active + (resumable_state(resumable) == RESUMABLE_PUBLISHED
                         ? KEPT_OUTCOME_S
                         : (time_t)config_number(&resumable->kept.server->config->upload.expire_s));
}

void resumable_end_claim(struct resumable *resumable, uint64_t *claim)
{
    if (*claim != 0 && resumable_state(resumable) != RESUMABLE_GONE)
        claim_end(&resumable->claim, *claim);
    *claim = 0;
}

void resumable_drop(struct resumable *resumable)
{
    set_state(resumable, RESUMABLE_GONE);
    kept_uploads_drop(&resumable->kept);
}

/* --- bytes --- */

void resumable_set_length(struct resumable *resumable, uint64_t length)
{
    assert(atomic_load(&resumable->length) == RESUMABLE_UNKNOWN);
    assert(length >= atomic_load(&resumable->kept.entry.received));
    /* Whoever sees the length must see that it is to be recorded. */
    atomic_store(&resumable->is_length_stated, true);
    atomic_store(&resumable->length, length);
    atomic_store(&resumable->kept.entry.length, length);
}

static void add_received(struct resumable *resumable, uint64_t length)
{
    uint64_t received = atomic_fetch_add(&resumable->kept.entry.received, length) + length;

    assert(received <= atomic_load(&resumable->length));
    assert(resumable_state(resumable) != RESUMABLE_PUBLISHED);
    (void)received;
    resumable_touch(resumable);
}

/* The digest of a part is of no use: parts are hashed when they are joined. */
void resumable_advance(struct resumable *resumable, uint64_t length)
{
    add_received(resumable, length);
    if (resumable->role != RESUMABLE_PART)
        body_follower_advance(&resumable->follower, length);
}

void resumable_count(struct resumable *resumable, uint64_t length)
{
    add_received(resumable, length);
    if (resumable->role != RESUMABLE_PART)
        body_follower_count(&resumable->follower, length);
}

/* Syncs the bytes first, then the number that says that they are durable. */
static enum zt_status sync_and_note(struct resumable *resumable, struct zt_error *error)
{
    uint64_t received = atomic_load(&resumable->kept.entry.received);
    enum zt_status status;

    assert(atomic_load(&resumable->durable) <= received);
    if (received == atomic_load(&resumable->durable))
        return ZT_OK;
    status = resumable->kept.server->store->ops->sync(resumable->data, error);
    if (status == ZT_OK)
        status = resumable_files_note(resumable, received, error);
    if (status == ZT_OK)
        atomic_store(&resumable->durable, received);
    return status;
}

/* Before bytes up to that length are reported: publication may follow. */
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

enum zt_status resumable_make_durable(struct resumable *resumable, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    pthread_mutex_lock(&resumable->sync_lock);
    if (resumable->data != NULL) {
        status = note_length(resumable, error);
        if (status == ZT_OK)
            status = sync_and_note(resumable, error);
    }
    pthread_mutex_unlock(&resumable->sync_lock);
    return status;
}

/* --- publication --- */

static bool hash_whole(struct resumable *resumable, struct failure *failure)
{
    struct zt_error error;

    if (resumable->is_hashed)
        return true;
    if (body_follower_finish(&resumable->follower, &error) != ZT_OK)
        return failure_set(failure, PROBLEM_INTERNAL, &error);
    byte_digests_finish(&resumable->digests);
    memcpy(resumable->published.sha256, resumable->digests.sha256.bytes,
           sizeof(resumable->published.sha256));
    resumable->is_hashed = true;
    return true;
}

static bool check_digest(const struct resumable *resumable, struct failure *failure)
{
    struct digest_field stated = stated_digest(resumable);

    return byte_digests_agree(&resumable->digests, &stated) ||
           failure_refuse(failure, PROBLEM_DIGEST_MISMATCH,
                          "the file does not have the digest of Repr-Digest");
}

static bool note_end(struct resumable *resumable, struct failure *failure)
{
    struct zt_error error;

    return resumable_files_note_end(resumable, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

/* Its bytes have become a model, or part of one. A HEAD that comes now finds nothing left to make
 * durable. */
static void end_files(struct resumable *resumable)
{
    const struct store_ops *ops = resumable->kept.server->store->ops;

    pthread_mutex_lock(&resumable->sync_lock);
    resumable->data = NULL;
    ops->abandon(resumable->state_file);
    resumable->state_file = NULL;
    pthread_mutex_unlock(&resumable->sync_lock);
    kept_upload_touch(&resumable->kept);
    set_state(resumable, RESUMABLE_PUBLISHED);
}

static bool run_publication(struct resumable *resumable, struct name_filter covers,
                            struct failure *failure)
{
    struct publication publication = {
        .server = resumable->kept.server,
        .stored = resumable->data,
        .name = resumable->kept.entry.model,
        .preconditions = {.if_match = resumable->texts[RESUMABLE_IF_MATCH],
                          .if_none_match = resumable->texts[RESUMABLE_IF_NONE_MATCH],
                          .if_unmodified_since = resumable->texts[RESUMABLE_IF_UNMODIFIED_SINCE]},
        .covers = covers,
        .published = resumable->published,
    };

    if (!publication_run(&publication, failure))
        return false;
    resumable->published = publication.published;
    end_files(resumable);
    return true;
}

/* Whether another try might publish the same bytes under the same conditions: the disk may have
 * space again, a folder may no longer be in the way, the object store may be back. */
static bool may_succeed_later(enum problem problem)
{
    return problem == PROBLEM_INTERNAL || problem == PROBLEM_INSUFFICIENT_STORAGE ||
           problem == PROBLEM_READ_ONLY || problem == PROBLEM_CONFLICT ||
           problem == PROBLEM_STORE_UNAVAILABLE || problem == PROBLEM_NOT_IMPLEMENTED;
}

bool resumable_publish(struct resumable *resumable, struct name_filter covers,
                       struct failure *failure)
{
    assert(resumable->role != RESUMABLE_PART);
    assert(resumable_state(resumable) == RESUMABLE_RECEIVING);
    assert(atomic_load(&resumable->durable) == atomic_load(&resumable->length));
    if (hash_whole(resumable, failure) && check_digest(resumable, failure) &&
        note_end(resumable, failure) && run_publication(resumable, covers, failure)) {
        kept_uploads_finish(&resumable->kept);
        metric_add(METRIC_PUBLISHED_RESUMABLE, 1);
        return true;
    }
    metric_add(METRIC_FAILED_RESUMABLE, 1);
    if (!may_succeed_later(failure->problem))
        resumable_drop(resumable);
    return false;
}

/* Like a published upload: if data is missing after the end was noted, that is its outcome, which
 * is kept for a client that asks again because the final upload's answer was lost. */
void resumable_use_up(struct resumable *part, const uint8_t file_sha256[32])
{
    struct stored_upload *data = part->data;
    struct zt_error error;

    assert(part->role == RESUMABLE_PART && resumable_is_whole(part));
    memcpy(part->published.sha256, file_sha256, sizeof(part->published.sha256));
    part->is_hashed = true;
    if (resumable_files_note_end(part, &error) != ZT_OK ||
        resumable_files_remove_data(part, &error) != ZT_OK) {
        log_write(LOG_LEVEL_WARN, "upload %s: its outcome is not kept: %s", part->kept.entry.id,
                  error.message);
        resumable_drop(part);
        return;
    }
    end_files(part);
    part->kept.server->store->ops->abandon(data);
    kept_uploads_finish(&part->kept);
}
