/* The lifetime of staged objects. */
#include "hub/write/staged_objects.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "hub/write/staged_work.h"
#include "store/staging.h"

/* A bit mask of the states that may follow each state. */
static const unsigned next_states[] = {
    [STAGED_ARRIVING] = 1U << STAGED_READY | 1U << STAGED_GONE,
    [STAGED_READY] = 1U << STAGED_TAKEN | 1U << STAGED_GONE,
    [STAGED_TAKEN] = 1U << STAGED_READY | 1U << STAGED_GONE,
    [STAGED_GONE] = 0,
};

/* Returns false if another thread was faster. */
static bool change_state(struct staged_object *object, enum staged_state from, enum staged_state to)
{
    assert(next_states[from] >> to & 1);
    return atomic_compare_exchange_strong(&object->state, &from, to);
}

static void set_state(struct staged_object *object, enum staged_state from, enum staged_state to)
{
    const bool is_changed = change_state(object, from, to);

    assert(is_changed);
    (void)is_changed;
}

/* --- life --- */

static void free_object(struct kept_upload *upload)
{
    struct staged_object *object = (struct staged_object *)upload;

    kept_data_destroy(&object->data);
    free(object->parts);
    free(object);
}

static int64_t left_ms(struct kept_upload *upload)
{
    return kept_upload_left_ms(upload, config_number(&upload->server->config->upload.expire_s));
}

/* An object that arrives whole ends with its request, and an object that was just requested will
 * soon be used: neither expires. */
static bool end(struct kept_upload *upload)
{
    struct staged_object *object = (struct staged_object *)upload;

    if (left_ms(upload) > 0)
        return false;
    if (object->parts != NULL && atomic_load(&object->state) == STAGED_ARRIVING)
        return kept_data_close(&object->data) && change_state(object, STAGED_ARRIVING, STAGED_GONE);
    if (!change_state(object, STAGED_READY, STAGED_GONE))
        return false;
    log_write(LOG_LEVEL_INFO, "%s: an uploaded file expired before a commit used it",
              upload->entry.model);
    return true;
}

const struct kept_kind staged_kind = {
    .kind = UPLOAD_KIND_STAGED,
    .limit_offset = offsetof(struct config, hub.staged_per_client),
    .open = staged_files_open,
    .left_ms = left_ms,
    .end = end,
    .free = free_object,
};

struct staged_object *staged_new(struct server *server, const char *id, const char *repo,
                                 const char *owner)
{
    struct staged_object *object = calloc(1, sizeof(*object));

    if (object == NULL)
        return NULL;
    kept_upload_init(&object->kept, &staged_kind, server, id);
    kept_data_init(&object->data, &object->kept, STAGED_DATA);
    snprintf(object->kept.entry.model, sizeof(object->kept.entry.model), "%s", repo);
    snprintf(object->owner, sizeof(object->owner), "%s", owner);
    return object;
}

/* --- on the way --- */

static uint64_t most_bytes(const struct server *server)
{
    return (uint64_t)config_number(&server->config->upload.max_bytes);
}

static bool refuse_large(struct failure *failure)
{
    return failure_refuse(failure, PROBLEM_TOO_LARGE,
                          "the file is larger than this server accepts");
}

/* Makes the folder before adding it to the table: expiry removes objects from the table with their
 * folders. */
static bool begin(struct staged_object *object, uint64_t length, struct failure *failure)
{
    if (!kept_data_begin(&object->data, length, failure))
        return false;
    if (kept_uploads_add(&object->kept))
        return true;
    return failure_refuse(
        failure, PROBLEM_RATE_LIMITED,
        "this client already has %u uploaded files that wait for a commit: hub.staged_per_client",
        (unsigned)config_number(&object->kept.server->config->hub.staged_per_client));
}

bool staged_make(struct staged_object *object, const struct staged_origin *origin,
                 struct failure *failure)
{
    struct registry_entry *entry = &object->kept.entry;

    snprintf(entry->client, sizeof(entry->client), "%s", origin->client);
    if (origin->length == STAGED_UNKNOWN)
        return begin(object, origin->length, failure);
    if (origin->length > most_bytes(object->kept.server))
        return refuse_large(failure);
    atomic_store(&entry->length, origin->length);
    return begin(object, origin->length, failure);
}

struct staged_object *staged_begin(struct server *server, const struct staged_origin *origin,
                                   struct failure *failure)
{
    char id[UPLOAD_ID_SIZE];
    struct staged_object *object;

    registry_make_id(id);
    object = staged_new(server, id, origin->repo, origin->owner);
    if (object == NULL) {
        failure_no_memory(failure, "an upload");
        return NULL;
    }
    if (staged_make(object, origin, failure))
        return object;
    kept_upload_release(object);
    return NULL;
}

bool staged_write(struct staged_object *object, uint64_t offset, const void *bytes, size_t length,
                  struct failure *failure)
{
    const uint64_t most = most_bytes(object->kept.server);

    assert(atomic_load(&object->state) == STAGED_ARRIVING);
    if (offset > most || length > most - offset)
        return refuse_large(failure);
    if (!kept_data_write(&object->data, offset, bytes, length, failure))
        return false;
    if (object->parts == NULL)
        atomic_fetch_add(&object->kept.entry.received, length);
    return true;
}

bool staged_take_space(struct staged_object *object, uint64_t bytes, struct failure *failure)
{
    return kept_data_take_space(&object->data, bytes, failure);
}

struct staged_file *staged_file(const struct staged_object *object)
{
    return object->data.file;
}

bool staged_finish(struct staged_object *object, const uint8_t sha256[32], struct failure *failure)
{
    struct zt_error error;

    assert(atomic_load(&object->state) == STAGED_ARRIVING);
    /* For objects in parts, other threads may be comparing these fields. */
    if (object->parts == NULL) {
        object->length = staged_file_length(object->data.file);
        memcpy(object->sha256, sha256, sizeof(object->sha256));
    }
    if (staged_file_sync(object->data.file, &error) != ZT_OK ||
        staged_describe(object, &error) != ZT_OK)
        return failure_of_store(failure, &error);
    kept_data_end(&object->data);
    kept_upload_touch(&object->kept);
    set_state(object, STAGED_ARRIVING, STAGED_READY);
    kept_upload_release(object);
    return true;
}

static void remove_abandoned(struct job *job)
{
    struct staged_object *object =
        (struct staged_object *)((char *)job - offsetof(struct staged_object, job));

    metric_add(METRIC_FAILED_STAGED, 1);
    kept_uploads_drop(&object->kept);
    kept_upload_release(object);
}

void staged_abandon(struct staged_object *object)
{
    if (object == NULL)
        return;
    set_state(object, STAGED_ARRIVING, STAGED_GONE);
    object->job.run = remove_abandoned;
    workers_submit_long(object->kept.server->workers, &object->job);
}

/* --- owners --- */

const char *staged_owner(const struct request *request, const char *client)
{
    return request->access->needs_client ? client : "";
}

void staged_asker_of(const struct request *request, struct staged_asker *out_asker)
{
    out_asker->owner[0] = '\0';
    if (request->client != NULL)
        registry_client_name(request->client, out_asker->owner);
    out_asker->sees_all = authorize_filter(request).passes == NULL;
}

/* --- found again --- */

struct search {
    struct staged_wanted wanted;
    unsigned states; /* a bit mask */
    bool is_own;     /* only the asker's own objects, or only other clients' */
};

static bool is_wanted(const void *context, const struct kept_upload *upload)
{
    const struct search *search = context;
    const struct staged_wanted *wanted = &search->wanted;
    const struct staged_object *object = (const struct staged_object *)upload;

    return upload->kind == &staged_kind &&
           (search->states >> atomic_load(&object->state) & 1) != 0 &&
           memcmp(object->sha256, wanted->sha256, sizeof(object->sha256)) == 0 &&
           (strcmp(object->owner, wanted->asker->owner) == 0) == search->is_own &&
           strcmp(upload->entry.model, wanted->repo) == 0;
}

/* Returns a reference, or NULL. */
static struct staged_object *find_own(struct server *server, const struct staged_wanted *wanted,
                                      unsigned states)
{
    const struct search search = {*wanted, states, true};

    return (struct staged_object *)kept_uploads_search(server->kept, is_wanted, &search);
}

/* Does the same among other clients' objects. A commit that uses one may still put it back. */
static struct staged_object *find_other(struct server *server, const struct staged_wanted *wanted)
{
    const struct search search = {*wanted, 1U << STAGED_READY, false};

    return wanted->asker->sees_all
               ? (struct staged_object *)kept_uploads_search(server->kept, is_wanted, &search)
               : NULL;
}

bool staged_exists(struct server *server, const struct staged_wanted *wanted, uint64_t *out_length)
{
    struct staged_object *object =
        find_own(server, wanted, 1U << STAGED_READY | 1U << STAGED_TAKEN);

    if (object == NULL)
        object = find_other(server, wanted);
    if (object == NULL)
        return false;
    kept_upload_touch(&object->kept);
    *out_length = object->length;
    kept_upload_release(object);
    return true;
}

/* An object that another commit takes at this moment is skipped; there may be more of them. */
static struct staged_object *take_own(struct server *server, const struct staged_wanted *wanted)
{
    struct staged_object *object;

    while ((object = find_own(server, wanted, 1U << STAGED_READY)) != NULL) {
        if (change_state(object, STAGED_READY, STAGED_TAKEN))
            return object;
        kept_upload_release(object);
    }
    return NULL;
}

enum staged_found staged_take(struct server *server, const struct staged_wanted *wanted,
                              struct staged_object **out_object)
{
    struct staged_object *object = take_own(server, wanted);
    enum staged_found found = STAGED_FOUND;

    if (object == NULL) {
        object = find_other(server, wanted);
        found = STAGED_LENT;
    }
    if (object != NULL) {
        kept_upload_touch(&object->kept);
        *out_object = object;
        return found;
    }
    /* It may have been put back since. */
    object = find_own(server, wanted, 1U << STAGED_READY | 1U << STAGED_TAKEN);
    kept_upload_release(object);
    return object != NULL ? STAGED_IN_USE : STAGED_NOT_FOUND;
}

uint64_t staged_length(const struct staged_object *object)
{
    return object->length;
}

bool staged_open(const struct staged_object *object, struct staged_file **out_file,
                 struct failure *failure)
{
    struct store *store = object->kept.server->store;
    struct zt_error error;

    return staging_folder_open(store->staging, object->kept.entry.id, STAGED_DATA, out_file,
                               &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

void staged_put_back(struct staged_object *object)
{
    if (object == NULL)
        return;
    kept_upload_touch(&object->kept);
    set_state(object, STAGED_TAKEN, STAGED_READY);
    kept_upload_release(object);
}

void staged_return(struct staged_object *object)
{
    kept_upload_release(object);
}

void staged_use_up(struct staged_object *object)
{
    struct server *server = object->kept.server;
    struct staged_asker owner = {.sees_all = false};
    const struct staged_wanted same = {object->kept.entry.model, object->sha256, &owner};
    struct staged_object *other;

    strcpy(owner.owner, object->owner);
    set_state(object, STAGED_TAKEN, STAGED_GONE);
    metric_add(METRIC_PUBLISHED_STAGED, 1);
    kept_uploads_drop(&object->kept);
    while ((other = find_own(server, &same, 1U << STAGED_READY)) != NULL) {
        if (change_state(other, STAGED_READY, STAGED_GONE))
            kept_uploads_drop(&other->kept);
        kept_upload_release(other);
    }
    kept_upload_release(object);
}
