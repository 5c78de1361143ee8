/* The table of sessions: a list for each first byte of an id. */
#include "upload/writer/writers.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "upload/writer/writer_journal.h"

#define LISTS 256
/* How long a commit can be repeated. */
#define OUTCOME_S 600

struct writers {
    struct server *server;
    pthread_mutex_t lock;
    struct writer_session *lists[LISTS];
};

struct writers *writers_new(struct server *server)
{
    struct writers *writers = calloc(1, sizeof(*writers));

    if (writers == NULL)
        return NULL;
    writers->server = server;
    pthread_mutex_init(&writers->lock, NULL);
    return writers;
}

void writers_free(struct writers *writers)
{
    if (writers == NULL)
        return;
    for (int i = 0; i < LISTS; i++) {
        while (writers->lists[i] != NULL) {
            struct writer_session *session = writers->lists[i];

            writers->lists[i] = session->next;
            registry_remove(writers->server->registry, &session->entry);
            writer_session_release(session);
        }
    }
    pthread_mutex_destroy(&writers->lock);
    free(writers);
}

/* Ids are digits of random numbers. */
static struct writer_session **list_of(struct writers *writers, const char *id)
{
    return &writers->lists[((unsigned char)id[0] * 16u + (unsigned char)id[1]) % LISTS];
}

struct writer_session *writers_find(struct writers *writers, struct zt_text id)
{
    struct writer_session *session;

    if (!registry_id_is_valid(id))
        return NULL;
    pthread_mutex_lock(&writers->lock);
    session = *list_of(writers, id.bytes);
    while (session != NULL && memcmp(session->entry.id, id.bytes, id.length) != 0)
        session = session->next;
    if (session != NULL)
        writer_session_hold(session);
    pthread_mutex_unlock(&writers->lock);
    return session;
}

static void put_in(struct writers *writers, struct writer_session *session)
{
    struct writer_session **list = list_of(writers, session->entry.id);

    pthread_mutex_lock(&writers->lock);
    session->next = *list;
    *list = session;
    pthread_mutex_unlock(&writers->lock);
}

static bool take_out(struct writers *writers, const struct writer_session *session)
{
    struct writer_session **link = list_of(writers, session->entry.id);
    bool found;

    pthread_mutex_lock(&writers->lock);
    while (*link != NULL && *link != session)
        link = &(*link)->next;
    found = *link != NULL;
    if (found)
        *link = session->next;
    pthread_mutex_unlock(&writers->lock);
    return found;
}

bool writers_add(struct writers *writers, struct writer_session *session)
{
    unsigned limit = (unsigned)writers->server->config->upload.sessions_per_client;

    if (!registry_add(writers->server->registry, &session->entry, limit))
        return false;
    put_in(writers, session);
    return true;
}

void writers_drop(struct writers *writers, struct writer_session *session)
{
    struct store *store = writers->server->store;
    struct zt_error error;

    if (!take_out(writers, session))
        return;
    registry_remove(writers->server->registry, &session->entry);
    if (store->ops->kept_drop(store, session->entry.id, &error) != ZT_OK)
        log_write(LOG_LEVEL_WARN, "upload %s: not removed: %s", session->entry.id, error.message);
    writer_session_release(session);
}

bool writers_restore(struct writers *writers, const char *id)
{
    struct writer_session *session = writer_session_new(writers->server, id);

    if (session == NULL)
        return false;
    if (!writer_journal_restore(session)) {
        writer_session_release(session);
        return false;
    }
    if (session->state == WRITER_OPEN)
        (void)registry_add(writers->server->registry, &session->entry, 0);
    put_in(writers, session);
    return true;
}

/* --- expiry --- */

time_t writer_session_expires(struct writer_session *session)
{
    time_t active = atomic_load(&session->entry.active);
    int64_t expire_s = session->server->config->upload.expire_s;

    pthread_mutex_lock(&session->lock);
    if (session->state == WRITER_COMMITTED) {
        active = session->outcome.when;
        expire_s = expire_s < OUTCOME_S ? expire_s : OUTCOME_S;
    }
    pthread_mutex_unlock(&session->lock);
    return active + (time_t)expire_s;
}

/* One of a list that has expired, held; NULL when there is none. */
static struct writer_session *find_expired(struct writers *writers, struct writer_session *list,
                                           time_t now)
{
    pthread_mutex_lock(&writers->lock);
    while (list != NULL && writer_session_expires(list) > now)
        list = list->next;
    if (list != NULL)
        writer_session_hold(list);
    pthread_mutex_unlock(&writers->lock);
    return list;
}

/* False: it is being committed. */
static bool expire(struct writers *writers, struct writer_session *session)
{
    enum writer_state state;
    bool ended = writer_round_end(session, WRITER_DROPPED, &state);

    if (ended) {
        if (state == WRITER_OPEN)
            log_write(LOG_LEVEL_INFO, "upload %s: removed, it was idle for too long",
                      session->entry.id);
        writers_drop(writers, session);
    }
    return ended;
}

void writers_expire(struct writers *writers)
{
    time_t now = time(NULL);

    for (int i = 0; i < LISTS; i++) {
        struct writer_session *session;
        bool went = true;

        while (went && (session = find_expired(writers, writers->lists[i], now)) != NULL) {
            went = expire(writers, session);
            writer_session_release(session);
        }
    }
}
