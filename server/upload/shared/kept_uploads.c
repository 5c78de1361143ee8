/* The table of kept uploads (256 lists under one lock) and their timer. No thread waits for a disk
 * while it holds that lock. */
#include "upload/shared/kept_uploads.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "http/wire/loop.h"
#include "store/staging.h"

/* One for each first byte of an id. */
#define LISTS    256
#define MS_PER_S 1000
/* How often to look for expired uploads. */
#define LOOK_S 1
/* Maximum number of uploads removed from one list per pass. */
#define EXPIRED_MAX 16

static_assert((int)METRIC_BEGUN_MULTIPART - (int)METRIC_BEGUN_FILE == (int)UPLOAD_KIND_MULTIPART,
              "kinds have the same order as metrics of uploads that began");
static_assert((int)METRIC_EXPIRED_MULTIPART - (int)METRIC_EXPIRED_WRITER ==
                  (int)UPLOAD_KIND_MULTIPART - (int)UPLOAD_KIND_WRITER,
              "kinds have the same order as metrics of uploads that expired");

struct kept_uploads {
    struct server *server;
    const struct kept_kind *const *kinds;
    int timer; /* -1: none */
    struct job job;
    atomic_bool is_queued;
    /* Held while a folder of a list is read; taken before the other lock. */
    pthread_mutex_t adopting[LISTS];
    pthread_mutex_t lock; /* guards the lists */
    struct kept_upload *lists[LISTS];
    atomic_size_t count; /* number of uploads in the table */
};

/* --- one upload --- */

void kept_upload_init(struct kept_upload *upload, const struct kept_kind *kind,
                      struct server *server, const char *id)
{
    assert(kind->kind > UPLOAD_KIND_FILE && kind->kind < UPLOAD_KINDS);
    assert(strlen(id) == UPLOAD_ID_SIZE - 1);
    upload->kind = kind;
    upload->server = server;
    upload->entry.kind = kind->kind;
    strcpy(upload->entry.id, id);
    upload->entry.created = time(NULL);
    atomic_init(&upload->entry.active, upload->entry.created);
    atomic_init(&upload->entry.touched_ms, clock_ms());
    atomic_init(&upload->references, 1);
}

void kept_upload_hold(struct kept_upload *upload)
{
    unsigned before = atomic_fetch_add(&upload->references, 1);

    assert(before > 0);
    (void)before;
}

void kept_upload_release(void *thing)
{
    struct kept_upload *upload = thing;
    unsigned before;

    if (upload == NULL)
        return;
    before = atomic_fetch_sub(&upload->references, 1);
    assert(before > 0);
    if (before > 1)
        return;
    assert(!upload->is_listed);
    upload->kind->free(upload);
}

void kept_upload_touch(struct kept_upload *upload)
{
    assert(atomic_load(&upload->references) > 0);
    atomic_store(&upload->entry.active, time(NULL));
    atomic_store(&upload->entry.touched_ms, clock_ms());
}

int64_t kept_upload_left_ms(const struct kept_upload *upload, int64_t limit_s)
{
    return atomic_load(&upload->entry.touched_ms) + limit_s * MS_PER_S - clock_ms();
}

int64_t kept_upload_ms_of(time_t when)
{
    const time_t age_s = time(NULL) - when;

    /* A time in the future was noted before the clock was set back. */
    return clock_ms() - (age_s > 0 ? (int64_t)age_s * MS_PER_S : 0);
}

time_t kept_upload_time_in(int64_t left_ms)
{
    return time(NULL) + (time_t)(left_ms / MS_PER_S);
}

/* --- the table --- */

unsigned kept_uploads_list_of(const char *id)
{
    uint8_t list = 0;
    const bool is_id = zt_hex_read_lower((struct zt_text){id, 2}, &list, 1);

    assert(is_id);
    (void)is_id;
    return list;
}

/* The lock must be held. */
static struct kept_upload *look_up(struct kept_uploads *kept, const char *id)
{
    struct kept_upload *upload = kept->lists[kept_uploads_list_of(id)];

    while (upload != NULL && memcmp(upload->entry.id, id, UPLOAD_ID_SIZE - 1) != 0)
        upload = upload->next;
    assert(upload == NULL || upload->is_listed);
    return upload;
}

/* Takes a reference. Returns false if the id is already in the table. */
static bool put_in(struct kept_uploads *kept, struct kept_upload *upload)
{
    struct kept_upload **list = &kept->lists[kept_uploads_list_of(upload->entry.id)];
    bool is_new;

    pthread_mutex_lock(&kept->lock);
    is_new = look_up(kept, upload->entry.id) == NULL;
    if (is_new) {
        assert(!upload->is_listed);
        assert(upload->entry.kind == upload->kind->kind);
        kept_upload_hold(upload);
        upload->is_listed = true;
        upload->next = *list;
        *list = upload;
        atomic_fetch_add(&kept->count, 1);
    }
    pthread_mutex_unlock(&kept->lock);
    return is_new;
}

/* Releases the table's reference. */
static void take_out(struct kept_uploads *kept, struct kept_upload *upload)
{
    struct kept_upload **link = &kept->lists[kept_uploads_list_of(upload->entry.id)];
    bool found;

    pthread_mutex_lock(&kept->lock);
    while (*link != NULL && *link != upload)
        link = &(*link)->next;
    found = *link != NULL;
    assert(found == upload->is_listed);
    if (found) {
        assert(atomic_load(&kept->count) > 0);
        atomic_fetch_sub(&kept->count, 1);
        *link = upload->next;
        upload->is_listed = false;
    }
    pthread_mutex_unlock(&kept->lock);
    if (found)
        kept_upload_release(upload);
}

struct kept_upload *kept_uploads_find(struct kept_uploads *kept, enum upload_kind kind,
                                      struct zt_text id)
{
    struct kept_upload *upload;

    if (!registry_id_is_valid(id))
        return NULL;
    pthread_mutex_lock(&kept->lock);
    upload = look_up(kept, id.bytes);
    if (upload != NULL && upload->entry.kind != kind)
        upload = NULL;
    if (upload != NULL)
        kept_upload_hold(upload);
    pthread_mutex_unlock(&kept->lock);
    return upload;
}

struct kept_upload *kept_uploads_search(struct kept_uploads *kept,
                                        bool (*is_it)(const void *context,
                                                      const struct kept_upload *upload),
                                        const void *context)
{
    struct kept_upload *found = NULL;

    pthread_mutex_lock(&kept->lock);
    for (size_t list = 0; list < LISTS && found == NULL; list++) {
        found = kept->lists[list];
        while (found != NULL && !is_it(context, found))
            found = found->next;
    }
    assert(found == NULL || found->is_listed);
    if (found != NULL)
        kept_upload_hold(found);
    pthread_mutex_unlock(&kept->lock);
    return found;
}

static void remove_place(struct kept_upload *upload)
{
    struct store *store = upload->server->store;
    struct zt_error error;
    enum zt_status status;

    status = staging_folder_drop(store->staging, upload->entry.id, &error);
    if (status != ZT_OK && status != ZT_NOT_FOUND)
        log_write(LOG_LEVEL_WARN, "upload %s: not removed: %s", upload->entry.id, error.message);
}

static unsigned limit_of(const struct kept_upload *upload)
{
    const char *config = (const char *)upload->server->config;

    return (unsigned)config_number((const int64_t *)(config + upload->kind->limit_offset));
}

bool kept_uploads_add(struct kept_upload *upload)
{
    struct server *server = upload->server;
    unsigned limit = limit_of(upload);
    bool is_new;

    assert(!upload->is_listed);
    if (!registry_add(server->registry, &upload->entry, limit)) {
        remove_place(upload);
        return false;
    }
    metric_add(METRIC_BEGUN_FILE + (enum metric)upload->entry.kind, 1);
    is_new = put_in(server->kept, upload);
    assert(is_new);
    return is_new;
}

void kept_uploads_remove(struct kept_upload *upload)
{
    registry_remove(upload->server->registry, &upload->entry);
    take_out(upload->server->kept, upload);
}

/* --- places and outcomes --- */

/* Removes the folder first: an upload with a folder that is not in the table would be taken
 * over. */
void kept_uploads_drop(struct kept_upload *upload)
{
    assert(atomic_load(&upload->references) > 0);
    registry_remove(upload->server->registry, &upload->entry);
    remove_place(upload);
    take_out(upload->server->kept, upload);
}

void kept_uploads_finish(struct kept_upload *upload)
{
    struct store *store = upload->server->store;

    registry_remove(upload->server->registry, &upload->entry);
    staging_folder_release(store->staging, upload->entry.id);
}

/* --- uploads of an earlier process --- */

/* Takes over the caller's reference. */
static void take_over(struct kept_uploads *kept, struct kept_upload *upload, bool is_outcome)
{
    struct store *store = kept->server->store;

    assert(!upload->is_listed && atomic_load(&upload->references) == 1);
    /* If another request was faster, that is fine: the upload is in the table. */
    if (put_in(kept, upload) && !is_outcome)
        (void)registry_add(kept->server->registry, &upload->entry, 0);
    if (is_outcome)
        staging_folder_release(store->staging, upload->entry.id);
    kept_upload_release(upload);
}

static enum kept_opened open_place(struct kept_uploads *kept, const struct kept_kind *kind,
                                   const char *id)
{
    struct kept_upload *upload;
    enum kept_opened opened = kind->open(kept->server, id, &upload);

    if (opened == KEPT_NOT_OURS || opened == KEPT_UNREADABLE)
        return opened;
    assert(upload->kind == kind);
    take_over(kept, upload, opened == KEPT_OUTCOME);
    return KEPT_OPENED;
}

static bool restore(void *context, const char *id)
{
    struct kept_uploads *kept = context;
    struct zt_error error;

    for (const struct kept_kind *const *kind = kept->kinds; *kind != NULL; kind++) {
        enum kept_opened opened = open_place(kept, *kind, id);

        if (opened == KEPT_UNREADABLE)
            log_write(LOG_LEVEL_WARN, "upload %s: cannot be read at the moment; it is kept", id);
        if (opened != KEPT_NOT_OURS)
            return true;
    }
    log_write(LOG_LEVEL_WARN, "upload %s: removed, because it cannot be continued", id);
    (void)staging_folder_drop(kept->server->store->staging, id, &error);
    return true;
}

void kept_uploads_restore(struct kept_uploads *kept)
{
    struct store *store = kept->server->store;
    struct zt_error error;

    /* A read-only server leaves uploads to the next server that can write. */
    if (!kept->server->config->writable)
        return;
    if (staging_folders_adopt(store->staging, restore, kept, &error) != ZT_OK)
        log_write(LOG_LEVEL_WARN, "unfinished uploads cannot be restored: %s", error.message);
}

void kept_uploads_reopen(const struct kept_upload *forgotten)
{
    if (open_place(forgotten->server->kept, forgotten->kind, forgotten->entry.id) != KEPT_OPENED)
        log_write(LOG_LEVEL_WARN, "upload %s: cannot be reopened", forgotten->entry.id);
}

/* Tries to take over the upload in a folder. Gives up the folder again if that fails, unless this
 * process owned it before: it may belong to another kind, of any process. */
static enum kept_opened adopt(struct kept_uploads *kept, const struct kept_kind *kind,
                              const char *id)
{
    struct staging *staging = kept->server->store->staging;
    pthread_mutex_t *adopting = &kept->adopting[kept_uploads_list_of(id)];
    enum kept_opened opened;
    bool was_owned;

    pthread_mutex_lock(adopting);
    was_owned = staging_folder_is_owned(staging, id);
    opened = open_place(kept, kind, id);
    if (opened != KEPT_OPENED && !was_owned)
        staging_folder_release(staging, id);
    pthread_mutex_unlock(adopting);
    return opened;
}

struct kept_upload *kept_uploads_find_or_adopt(struct kept_uploads *kept, enum upload_kind kind,
                                               struct zt_text id, bool *out_unreadable)
{
    struct kept_upload *upload = kept_uploads_find(kept, kind, id);
    char text[UPLOAD_ID_SIZE] = "";

    *out_unreadable = false;
    if (upload != NULL || !registry_id_is_valid(id) || !kept->server->config->writable)
        return upload;
    memcpy(text, id.bytes, id.length);
    for (const struct kept_kind *const *one = kept->kinds; *one != NULL; one++) {
        enum kept_opened opened = (*one)->kind == kind ? adopt(kept, *one, text) : KEPT_NOT_OURS;

        *out_unreadable = *out_unreadable || opened == KEPT_UNREADABLE;
        if (opened == KEPT_OPENED)
            return kept_uploads_find(kept, kind, id);
    }
    return NULL;
}

bool kept_uploads_is_of_other_process(struct kept_uploads *kept, struct zt_text id)
{
    struct store *store = kept->server->store;
    char text[UPLOAD_ID_SIZE] = "";
    pthread_mutex_t *adopting;
    struct staged_file *file;
    enum zt_status status;
    bool was_owned;

    if (!registry_id_is_valid(id) || !kept->server->config->writable)
        return false;
    memcpy(text, id.bytes, id.length);
    adopting = &kept->adopting[kept_uploads_list_of(text)];
    pthread_mutex_lock(adopting);
    was_owned = staging_folder_is_owned(store->staging, text);
    status = staging_folder_open(store->staging, text, "none", &file, NULL);
    if (status == ZT_OK)
        staged_file_close(file);
    if (!was_owned)
        staging_folder_release(store->staging, text);
    pthread_mutex_unlock(adopting);
    return status == ZT_ARGUMENT;
}

/* --- expiry --- */

/* Returns the number of expired uploads, each held. */
static size_t find_expired(struct kept_uploads *kept, size_t list,
                           struct kept_upload *out_expired[EXPIRED_MAX])
{
    size_t count = 0;

    assert(list < LISTS);
    pthread_mutex_lock(&kept->lock);
    for (struct kept_upload *one = kept->lists[list]; one != NULL && count < EXPIRED_MAX;
         one = one->next) {
        assert(one->is_listed);
        if (one->kind->left_ms(one) > 0)
            continue;
        kept_upload_hold(one);
        out_expired[count++] = one;
    }
    pthread_mutex_unlock(&kept->lock);
    return count;
}

void kept_uploads_expire(struct kept_uploads *kept)
{
    if (atomic_load(&kept->count) == 0)
        return;
    for (size_t list = 0; list < LISTS; list++) {
        struct kept_upload *expired[EXPIRED_MAX];
        size_t count = find_expired(kept, list, expired);

        for (size_t i = 0; i < count; i++) {
            if (expired[i]->kind->end(expired[i])) {
                metric_add(METRIC_EXPIRED_WRITER +
                               (enum metric)(expired[i]->entry.kind - UPLOAD_KIND_WRITER),
                           1);
                kept_uploads_drop(expired[i]);
            }
            kept_upload_release(expired[i]);
        }
    }
}

static void run_expiry(struct job *job)
{
    struct kept_uploads *kept =
        (struct kept_uploads *)((char *)job - offsetof(struct kept_uploads, job));

    assert(atomic_load(&kept->is_queued));
    kept_uploads_expire(kept);
    atomic_store(&kept->is_queued, false);
}

static void on_timer(void *context)
{
    struct kept_uploads *kept = context;
    uint64_t times;

    if (read(kept->timer, &times, sizeof(times)) != (ssize_t)sizeof(times) ||
        atomic_exchange(&kept->is_queued, true))
        return;
    workers_submit_idle(kept->server->workers, &kept->job);
}

void kept_uploads_watch(struct kept_uploads *kept)
{
    const struct itimerspec every = {.it_interval.tv_sec = LOOK_S, .it_value.tv_sec = LOOK_S};

    assert(kept->timer < 0);
    kept->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (kept->timer < 0 || timerfd_settime(kept->timer, 0, &every, NULL) != 0 ||
        loop_watch(kept->server->loops[0], kept->timer, on_timer, kept) != 0)
        log_write(LOG_LEVEL_WARN, "unfinished uploads do not expire: there is no timer");
}

/* --- life --- */

struct kept_uploads *kept_uploads_new(struct server *server, const struct kept_kind *const *kinds)
{
    struct kept_uploads *kept = calloc(1, sizeof(*kept));

    if (kept == NULL)
        return NULL;
    kept->server = server;
    kept->kinds = kinds;
    kept->timer = -1;
    kept->job.run = run_expiry;
    for (size_t i = 0; i < LISTS; i++)
        pthread_mutex_init(&kept->adopting[i], NULL);
    pthread_mutex_init(&kept->lock, NULL);
    return kept;
}

void kept_uploads_free(struct kept_uploads *kept)
{
    if (kept == NULL)
        return;
    for (size_t i = 0; i < LISTS; i++)
        while (kept->lists[i] != NULL)
            kept_uploads_remove(kept->lists[i]);
    assert(atomic_load(&kept->count) == 0);
    if (kept->timer >= 0)
        close(kept->timer);
    pthread_mutex_destroy(&kept->lock);
    for (size_t i = 0; i < LISTS; i++)
        pthread_mutex_destroy(&kept->adopting[i]);
    free(kept);
}
