#include "hub/xet/session.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/server.h"
#include "store/staging.h"
#include "upload/shared/kept_data.h"
#include "zt/digest.h"

#define FILE_NAME "xorbs"
/* A power of two; doubled as it fills. */
#define FIRST_SLOTS 64

struct xet_session {
    struct kept_upload kept; /* entry.model: the repository */
    char key[UPLOAD_ID_SIZE];
    char owner[CLIENT_SIZE];
    struct kept_data data; /* closed when the session is over */

    pthread_mutex_t lock; /* guards the following */
    bool is_done;         /* a shard was accepted, and no data has arrived since */
    bool has_turn;
    struct waiter *waiting;
    uint64_t reserved; /* bytes of the file in use */
    uint64_t seed;     /* random, so that clients cannot choose colliding hashes */
    struct xet_xorb *slots;
    uint32_t slot_count;
    uint32_t xorb_count;
};

/* Held because two requests may begin the same session. */
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- the kind --- */

/* A process only knows its own sessions. */
static enum kept_opened open_left(struct server *server, const char *id,
                                  struct kept_upload **out_upload)
{
    (void)server;
    (void)id;
    (void)out_upload;
    return KEPT_NOT_OURS;
}

static int64_t idle_s(struct xet_session *session)
{
    const int64_t most = config_number(&session->kept.server->config->upload.expire_s);
    int64_t idle;

    pthread_mutex_lock(&session->lock);
    idle = session->is_done ? XET_DONE_S : XET_IDLE_S;
    pthread_mutex_unlock(&session->lock);
    return idle < most ? idle : most;
}

static int64_t left_ms(struct kept_upload *upload)
{
    return kept_upload_left_ms(upload, idle_s((struct xet_session *)upload));
}

static bool end(struct kept_upload *upload)
{
    return left_ms(upload) <= 0 && kept_data_close(&((struct xet_session *)upload)->data);
}

static void free_session(struct kept_upload *upload)
{
    struct xet_session *session = (struct xet_session *)upload;

    assert(session->waiting == NULL);
    kept_data_destroy(&session->data);
    pthread_mutex_destroy(&session->lock);
    free(session->slots);
    free(session);
}

const struct kept_kind xet_session_kind = {
    .kind = UPLOAD_KIND_XET,
    .limit_offset = offsetof(struct config, upload.sessions_per_client),
    .open = open_left,
    .left_ms = left_ms,
    .end = end,
    .free = free_session,
};

/* --- life --- */

static struct xet_session *new_session(struct server *server, const struct xet_session_name *name,
                                       const char *client)
{
    struct xet_session *session = calloc(1, sizeof(*session));
    char id[UPLOAD_ID_SIZE];

    if (session == NULL)
        return NULL;
    registry_make_id(id);
    kept_upload_init(&session->kept, &xet_session_kind, server, id);
    kept_data_init(&session->data, &session->kept, FILE_NAME);
    snprintf(session->kept.entry.model, sizeof(session->kept.entry.model), "%s", name->repo);
    snprintf(session->kept.entry.client, sizeof(session->kept.entry.client), "%s", client);
    memcpy(session->key, name->key.bytes, name->key.length);
    snprintf(session->owner, sizeof(session->owner), "%s", name->owner);
    pthread_mutex_init(&session->lock, NULL);
    while (getrandom(&session->seed, sizeof(session->seed), 0) != (ssize_t)sizeof(session->seed))
        ;
    return session;
}

/* Makes the folder before adding it to the table: expiry removes sessions from the table with their
 * folders. */
static bool begin(struct xet_session *session, struct failure *failure)
{
    if (!kept_data_begin(&session->data, UINT64_MAX, failure))
        return false;
    if (kept_uploads_add(&session->kept))
        return true;
    return failure_refuse(
        failure, PROBLEM_RATE_LIMITED,
        "this client already has %u uploads by Xet in progress: upload.sessions_per_client",
        (unsigned)config_number(&session->kept.server->config->upload.sessions_per_client));
}

static bool is_wanted(const void *context, const struct kept_upload *upload)
{
    const struct xet_session_name *wanted = context;
    const struct xet_session *session = (const struct xet_session *)upload;

    return upload->kind == &xet_session_kind && !kept_data_is_closed(&session->data) &&
           zt_text_is(wanted->key, session->key) && strcmp(session->owner, wanted->owner) == 0 &&
           strcmp(upload->entry.model, wanted->repo) == 0;
}

/* Returns false if the session has just expired, or with failure set. */
static bool enter(struct xet_session *session, struct failure *failure)
{
    if (!kept_data_enter(&session->data, failure))
        return false;
    kept_upload_touch(&session->kept);
    return true;
}

/* begin_lock must be held. */
static struct xet_session *find_or_begin(struct server *server,
                                         const struct xet_session_name *wanted, const char *client,
                                         struct failure *failure)
{
    struct xet_session *session =
        (struct xet_session *)kept_uploads_search(server->kept, is_wanted, wanted);

    if (session != NULL && enter(session, failure))
        return session;
    kept_upload_release(session);
    if (failure->is_set)
        return NULL;
    session = new_session(server, wanted, client);
    if (session == NULL) {
        failure_no_memory(failure, "an upload");
        return NULL;
    }
    if (begin(session, failure))
        return session;
    kept_upload_release(session);
    return NULL;
}

struct xet_session *xet_session_use(struct server *server, const struct xet_session_name *name,
                                    const char *client, struct failure *failure)
{
    struct xet_session *session;

    if (!registry_id_is_valid(name->key)) {
        failure_refuse(failure, PROBLEM_NOT_FOUND, "there is no such address for uploads");
        return NULL;
    }
    pthread_mutex_lock(&begin_lock);
    session = find_or_begin(server, name, client, failure);
    pthread_mutex_unlock(&begin_lock);
    return session;
}

void xet_session_leave(void *thing)
{
    struct xet_session *session = thing;

    kept_data_leave(&session->data);
    kept_upload_release(&session->kept);
}

const char *xet_session_repo(const struct xet_session *session)
{
    return session->kept.entry.model;
}

const char *xet_session_client(const struct xet_session *session)
{
    return session->kept.entry.client;
}

const char *xet_session_owner(const struct xet_session *session)
{
    return session->owner;
}

/* --- its file --- */

static bool find_room(struct xet_session *session, uint64_t length, uint64_t *out_offset)
{
    const uint64_t most = (uint64_t)config_number(&session->kept.server->config->upload.max_bytes);
    bool is_room;

    pthread_mutex_lock(&session->lock);
    is_room = length <= most && session->reserved <= most - length;
    if (is_room) {
        *out_offset = session->reserved;
        session->reserved += length;
    }
    pthread_mutex_unlock(&session->lock);
    return is_room;
}

bool xet_session_reserve(struct xet_session *session, uint64_t length, uint64_t *out_offset,
                         struct failure *failure)
{
    if (!xet_session_take_space(session, length, failure))
        return false;
    if (find_room(session, length, out_offset))
        return true;
    xet_session_return_space(session, length);
    return failure_refuse(failure, PROBLEM_TOO_LARGE,
                          "the upload is larger than this server accepts");
}

bool xet_session_take_space(struct xet_session *session, uint64_t bytes, struct failure *failure)
{
    return kept_data_take_space(&session->data, bytes, failure);
}

void xet_session_return_space(struct xet_session *session, uint64_t bytes)
{
    if (bytes > 0)
        staged_file_return_space(session->data.file, bytes);
}

bool xet_session_write(struct xet_session *session, uint64_t offset, const void *bytes,
                       size_t length, struct failure *failure)
{
    if (!kept_data_write(&session->data, offset, bytes, length, failure))
        return false;
    atomic_fetch_add(&session->kept.entry.received, length);
    return true;
}

bool xet_session_read(struct xet_session *session, struct zt_source **out_source,
                      struct failure *failure)
{
    struct zt_error error;

    assert(session->has_turn);
    return staged_file_read_back(session->data.file, out_source, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

/* --- its xorbs --- */

/* Returns the slot of a xorb, or the empty one where it belongs. The lock must be held. */
static struct xet_xorb *slot_of(const struct xet_session *session, const uint8_t hash[32])
{
    uint8_t seeded[8 + 32];
    uint64_t at;

    memcpy(seeded, &session->seed, 8);
    memcpy(seeded + 8, hash, 32);
    at = zt_xxh3(seeded, sizeof(seeded)) & (session->slot_count - 1);
    while (session->slots[at].chunk_count != 0 && memcmp(session->slots[at].hash, hash, 32) != 0)
        at = (at + 1) & (session->slot_count - 1);
    return &session->slots[at];
}

/* Keeps a third of the slots empty. The lock must be held. */
static bool make_room(struct xet_session *session)
{
    struct xet_xorb *old = session->slots;
    const uint32_t old_count = session->slot_count;

    if (session->xorb_count < old_count - old_count / 3)
        return true;
    session->slot_count = old_count == 0 ? FIRST_SLOTS : 2 * old_count;
    session->slots = calloc(session->slot_count, sizeof(*session->slots));
    if (session->slots == NULL) {
        session->slots = old;
        session->slot_count = old_count;
        return false;
    }
    for (uint32_t i = 0; i < old_count; i++)
        if (old[i].chunk_count != 0)
            *slot_of(session, old[i].hash) = old[i];
    free(old);
    return true;
}

/* The lock must be held. */
static bool add(struct xet_session *session, const struct xet_xorb *xorb, struct failure *failure)
{
    struct xet_xorb *slot;

    if (session->xorb_count >= XET_XORBS_MAX)
        return failure_refuse(failure, PROBLEM_TOO_LARGE,
                              "an upload has at most %d xorbs on this server", XET_XORBS_MAX);
    if (!make_room(session))
        return failure_no_memory(failure, "a xorb");
    slot = slot_of(session, xorb->hash);
    if (slot->chunk_count != 0)
        return true;
    *slot = *xorb;
    session->xorb_count++;
    return true;
}

bool xet_session_add(struct xet_session *session, const struct xet_xorb *xorb,
                     struct failure *failure)
{
    bool is_added;

    assert(xorb->chunk_count > 0);
    pthread_mutex_lock(&session->lock);
    session->is_done = false;
    is_added = add(session, xorb, failure);
    pthread_mutex_unlock(&session->lock);
    return is_added;
}

bool xet_session_find(struct xet_session *session, const uint8_t hash[32],
                      struct xet_xorb *out_xorb)
{
    struct xet_xorb xorb = {.chunk_count = 0};

    pthread_mutex_lock(&session->lock);
    if (session->slot_count > 0)
        xorb = *slot_of(session, hash);
    pthread_mutex_unlock(&session->lock);
    if (xorb.chunk_count == 0)
        return false;
    *out_xorb = xorb;
    return true;
}

/* --- turns --- */

bool xet_session_take_turn(struct xet_session *session, struct waiter *waiter)
{
    bool is_mine;

    pthread_mutex_lock(&session->lock);
    is_mine = !session->has_turn;
    if (is_mine) {
        session->has_turn = true;
    } else {
        waiter->next = session->waiting;
        session->waiting = waiter;
    }
    pthread_mutex_unlock(&session->lock);
    return is_mine;
}

void xet_session_end_turn(struct xet_session *session, bool is_done)
{
    struct waiter *waiting;

    pthread_mutex_lock(&session->lock);
    assert(session->has_turn);
    session->has_turn = false;
    session->is_done = session->is_done || is_done;
    waiting = session->waiting;
    session->waiting = NULL;
    pthread_mutex_unlock(&session->lock);
    kept_upload_touch(&session->kept);
    waiters_wake(waiting);
}
