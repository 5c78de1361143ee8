/* Commit, one function a step; the first that fails ends it, and the upload stays open.
 *
 * "data" becomes the file where components lie tightly in it. Where bodies that failed or were
 * replaced have left holes, the file is made anew of what is wanted: nothing that nobody
 * acknowledged is ever published. */
#include "upload/writer/writer_commit.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "upload/shared/publication.h"
#include "upload/writer/writer_journal.h"
#include "upload/writer/writer_layout.h"
#include "zt/shards.h"
#include "zt/verify.h"

struct commit {
    struct writer_session *session;
    struct writer_layout layout;
    struct stored_upload *data;
    bool is_in_place; /* "data" is published, else one that was made anew */
    struct publication publication;
    struct writer_failure *failure;
};

static const struct store_ops *ops_of(const struct commit *commit)
{
    return commit->session->server->store->ops;
}

static bool fail_store(struct commit *commit, const struct zt_error *error)
{
    return writer_fail_store(commit->failure, error);
}

/* --- the file --- */

static bool write_at(struct commit *commit, uint64_t offset, const void *bytes, size_t length)
{
    struct zt_error error;

    return ops_of(commit)->write_at(commit->publication.stored, offset, bytes, length, &error) ==
               ZT_OK ||
           fail_store(commit, &error);
}

/* Whatever lies behind the components goes: the rest of bodies that failed, or of a commit that
 * did. */
static bool cut(struct commit *commit, struct stored_upload *data)
{
    struct zt_error error;

    return ops_of(commit)->truncate(data, commit->layout.data_end, &error) == ZT_OK ||
           fail_store(commit, &error);
}

static bool open_data(struct commit *commit)
{
    struct writer_session *session = commit->session;
    struct zt_error error;

    return ops_of(commit)->kept_open(session->server->store, session->entry.id, WRITER_DATA,
                                     &commit->data, &error) == ZT_OK ||
           fail_store(commit, &error);
}

/* The file of a commit that failed may be removed, or made again, only after this. */
static bool withdraw(struct commit *commit, struct zt_error *error)
{
    bool withdrawn;

    pthread_mutex_lock(&commit->session->journal_lock);
    withdrawn = writer_journal_withdraw(commit->session, error);
    pthread_mutex_unlock(&commit->session->journal_lock);
    return withdrawn;
}

static bool make_compact(struct commit *commit)
{
    struct writer_session *session = commit->session;
    const struct writer_layout *layout = &commit->layout;
    struct zt_error error;

    if (!withdraw(commit, &error))
        return fail_store(commit, &error);
    if (ops_of(commit)->kept_create(session->server->store, session->entry.id, WRITER_COMPACT,
                                    layout->data_end + layout->end_length,
                                    &commit->publication.stored, &error) != ZT_OK)
        return fail_store(commit, &error);
    for (size_t i = 0; i < layout->count; i++) {
        const struct writer_component *component = layout->components[i];

        if (ops_of(commit)->copy(commit->data, component->offset, commit->publication.stored,
                                 component->final_offset, component->length, &error) != ZT_OK)
            return fail_store(commit, &error);
        writer_session_touch(session);
    }
    return true;
}

static bool make_file(struct commit *commit)
{
    const struct zt_places places = zt_target_places(commit->session->target);
    const struct writer_layout *layout = &commit->layout;

    if (!open_data(commit))
        return false;
    commit->is_in_place = commit->layout.is_tight && !commit->session->is_dirty;
    if (commit->is_in_place) {
        commit->publication.stored = commit->data;
        commit->data = NULL;
    }
    return (commit->is_in_place ? cut(commit, commit->publication.stored) : make_compact(commit)) &&
           write_at(commit, 0, places.head, sizeof(places.head)) &&
           write_at(commit, layout->data_end, layout->end, layout->end_length);
}

/* --- publication --- */

static bool keep_alive(void *context, uint64_t bytes)
{
    (void)bytes;
    writer_session_touch(context);
    return true;
}

static bool hash_file(struct commit *commit)
{
    const struct zt_progress progress = {keep_alive, commit->session};
    struct zt_digest digest;
    struct zt_source *source;
    struct zt_error error;

    if (ops_of(commit)->read_back(commit->publication.stored, &source, &error) != ZT_OK ||
        zt_source_digest(source, ZT_DIGEST_SHA256, &progress, &digest, &error) != ZT_OK)
        return fail_store(commit, &error);
    memcpy(commit->publication.sha256, digest.bytes, sizeof(commit->publication.sha256));
    return true;
}

static bool note_publishing(struct commit *commit)
{
    struct writer_session *session = commit->session;
    struct zt_error error;
    bool noted;

    pthread_mutex_lock(&session->journal_lock);
    noted = writer_journal_publish(session, commit->is_in_place ? WRITER_DATA : WRITER_COMPACT,
                                   commit->publication.sha256, &error);
    pthread_mutex_unlock(&session->journal_lock);
    return noted || fail_store(commit, &error);
}

/* Hashed when they arrived. */
static const uint8_t *decoded_sha256(void *context, struct zt_text object, struct zt_text component,
                                     bool *out_compressed)
{
    const struct writer_session *session = context;
    const struct writer_object *held = writer_contents_find(&session->contents, object);
    const struct writer_component *found =
        held != NULL ? writer_object_find(held, component) : NULL;

    *out_compressed = found != NULL && found->compressed;
    return found != NULL ? found->sha256 : NULL;
}

static bool publish(struct commit *commit)
{
    return publication_run(&commit->publication) ||
           writer_fail(commit->failure, commit->publication.problem, &commit->publication.error);
}

/* Durable already: what cannot be written down here is found out at the next start. */
static void note_outcome(struct commit *commit)
{
    struct writer_session *session = commit->session;
    struct zt_error error;

    pthread_mutex_lock(&session->journal_lock);
    pthread_mutex_lock(&session->lock);
    memcpy(session->outcome.sha256, commit->publication.sha256, sizeof(session->outcome.sha256));
    memcpy(session->outcome.etag, commit->publication.etag, sizeof(session->outcome.etag));
    session->outcome.when = time(NULL);
    session->state = WRITER_COMMITTED;
    pthread_mutex_unlock(&session->lock);
    if (!writer_journal_outcome(session, &error))
        log_write(LOG_LEVEL_WARN, "upload %s: committed, but not written down: %s",
                  session->entry.id, error.message);
    pthread_mutex_unlock(&session->journal_lock);
    registry_remove(session->server->registry, &session->entry);
}

/* --- preconditions --- */

/* None of two lists matches when none of the joined one does. */
static const char *join_lists(const char *a, const char *b, char **out_joined)
{
    size_t size;

    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    /* Where nothing may be, no list can match. */
    if (strcmp(a, "*") == 0 || strcmp(b, "*") == 0)
        return "*";
    size = strlen(a) + strlen(b) + 3;
    *out_joined = malloc(size);
    if (*out_joined != NULL) {
        strcpy(*out_joined, a);
        strcat(*out_joined, ", ");
        strcat(*out_joined, b);
    }
    return *out_joined;
}

/* Those that cannot be joined with the upload's own are looked at here; all others at the moment of
 * publication. */
static bool check_now(struct commit *commit, const struct preconditions *asked)
{
    const struct preconditions *own = &commit->session->preconditions;
    struct preconditions now = {.if_match = own->if_match != NULL ? asked->if_match : NULL,
                                .if_unmodified_since = own->if_unmodified_since != NULL
                                                           ? asked->if_unmodified_since
                                                           : NULL};
    struct generation *current;
    bool hold;

    if (now.if_match == NULL && now.if_unmodified_since == NULL)
        return true;
    current = publication_find_current(commit->session->server, commit->session->entry.model);
    hold = publication_preconditions_hold(&now, current);
    generation_release(current);
    return hold || writer_refuse(commit->failure, PROBLEM_PRECONDITION_FAILED,
                                 "what stands under the name is not what the request asks for");
}

static bool set_preconditions(struct commit *commit, const struct preconditions *asked,
                              char **out_joined)
{
    const struct preconditions *own = &commit->session->preconditions;
    struct preconditions *all = &commit->publication.preconditions;
    bool is_whole;

    all->if_match = own->if_match != NULL ? own->if_match : asked->if_match;
    all->if_unmodified_since =
        own->if_unmodified_since != NULL ? own->if_unmodified_since : asked->if_unmodified_since;
    all->if_none_match = join_lists(own->if_none_match, asked->if_none_match, out_joined);
    is_whole =
        all->if_none_match != NULL || (own->if_none_match == NULL && asked->if_none_match == NULL);
    return is_whole ||
           writer_refuse(commit->failure, PROBLEM_INTERNAL, "no memory for the preconditions");
}

/* --- the whole --- */

/* Of the two files one stays: without an end when the upload goes on, and none when it is
 * published. */
static void end(struct commit *commit, bool done)
{
    struct writer_session *session = commit->session;
    struct zt_error error;

    if (!done && commit->is_in_place && commit->publication.stored != NULL)
        session->is_dirty = ops_of(commit)->truncate(commit->publication.stored,
                                                     commit->layout.data_end, &error) != ZT_OK;
    ops_of(commit)->abandon(commit->data);
    ops_of(commit)->abandon(commit->publication.stored);
    if (!commit->is_in_place && (done || withdraw(commit, &error)))
        (void)ops_of(commit)->kept_remove(session->server->store, session->entry.id,
                                          done ? WRITER_DATA : WRITER_COMPACT, &error);
    writer_layout_free(&commit->layout);
}

static bool run(struct commit *commit, const struct preconditions *asked)
{
    char *joined = NULL;
    bool done = set_preconditions(commit, asked, &joined) && check_now(commit, asked) &&
                writer_layout_make(commit->session, &commit->layout, commit->failure) &&
                make_file(commit) && hash_file(commit) && note_publishing(commit) &&
                publish(commit);

    if (done)
        note_outcome(commit);
    end(commit, done);
    free(joined);
    return done;
}

static bool refuse_state(enum writer_state state, struct writer_failure *failure)
{
    failure->is_passing = state == WRITER_COMMITTING;
    if (failure->is_passing)
        return writer_refuse(failure, PROBLEM_CONFLICT, "the upload is being committed already");
    return writer_refuse(failure, PROBLEM_UPLOAD_NOT_FOUND, "there is no such upload any more");
}

bool writer_commit(struct writer_session *session, const struct preconditions *preconditions,
                   struct writer_failure *failure)
{
    struct commit commit = {.session = session,
                            .publication = {.server = session->server,
                                            .name = session->entry.model,
                                            .decoded_sha256 = decoded_sha256,
                                            .context = session},
                            .failure = failure};
    enum writer_state state;
    bool done;

    if (!writer_round_end(session, WRITER_COMMITTING, &state))
        return state == WRITER_COMMITTED || refuse_state(state, failure);
    done = run(&commit, preconditions);
    if (!done)
        writer_round_begin(session);
    return done;
}
