/* Commits: the first step that fails ends the commit, and the upload stays open.
 *
 * "data" itself becomes the file if its components are contiguous. If failed or replaced bodies
 * have left holes, the components are copied into another file: only acknowledged bytes are ever
 * published. */
#include "upload/writer/writer_commit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "http/exchange/authorize.h"
#include "store/staging.h"
#include "upload/shared/current_model.h"
#include "upload/shared/publication.h"
#include "upload/writer/writer_journal.h"
#include "upload/writer/writer_layout.h"
#include "zt/verify.h"

struct commit {
    struct writer_session *session;
    struct writer_layout layout;
    struct staged_file *data;
    bool is_in_place; /* "data" is published, else a copy */
    struct publication publication;
    struct failure *failure;
};

static bool fail_store(struct commit *commit, const struct zt_error *error)
{
    return failure_of_store(commit->failure, error);
}

/* --- the file --- */

static bool write_at(struct commit *commit, uint64_t offset, const void *bytes, size_t length)
{
    struct zt_error error;

    assert(commit->publication.stored != NULL);
    return staged_file_write_at(commit->publication.stored, offset, bytes, length, &error) ==
               ZT_OK ||
           fail_store(commit, &error);
}

/* Removes everything after the components: remains of failed bodies or of a failed commit. */
static bool cut(struct commit *commit, struct staged_file *data)
{
    struct zt_error error;

    assert(data != NULL);
    return staged_file_truncate(data, commit->layout.data_end, &error) == ZT_OK ||
           fail_store(commit, &error);
}

static bool open_data(struct commit *commit)
{
    struct writer_session *session = commit->session;
    struct zt_error error;

    assert(commit->data == NULL);
    return staging_folder_open(session->kept.server->store->staging, session->kept.entry.id,
                               WRITER_DATA, &commit->data, &error) == ZT_OK ||
           fail_store(commit, &error);
}

/* The file of a failed commit may be removed, or made again, only after this. */
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

    assert(!commit->is_in_place && commit->data != NULL);
    if (!withdraw(commit, &error))
        return fail_store(commit, &error);
    if (staging_folder_create(session->kept.server->store->staging, session->kept.entry.id,
                              WRITER_COMPACT, layout->data_end + layout->end_length,
                              &commit->publication.stored, &error) != ZT_OK)
        return fail_store(commit, &error);
    for (size_t i = 0; i < layout->count; i++) {
        const struct writer_component *component = layout->components[i];

        assert(component->final_offset + component->length <= layout->data_end);
        if (staged_file_copy(commit->data, component->offset, commit->publication.stored,
                             component->final_offset, component->length, &error) != ZT_OK)
            return fail_store(commit, &error);
        kept_upload_touch(&session->kept);
    }
    return true;
}

static bool make_file(struct commit *commit)
{
    const struct zt_places places = zt_target_places(commit->session->target);
    const struct writer_layout *layout = &commit->layout;

    assert(layout->end != NULL && layout->end_length > 0);
    assert(commit->publication.stored == NULL);
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
    kept_upload_touch(context);
    return true;
}

static bool hash_file(struct commit *commit)
{
    const struct zt_progress progress = {keep_alive, &commit->session->kept};
    struct zt_digest digest;
    struct zt_error error;

    assert(commit->publication.stored != NULL);
    if (staged_file_digest(commit->publication.stored, ZT_DIGEST_SHA256, &progress, &digest,
                           &error) != ZT_OK)
        return fail_store(commit, &error);
    memcpy(commit->publication.published.sha256, digest.bytes,
           sizeof(commit->publication.published.sha256));
    return true;
}

static bool announce(struct commit *commit)
{
    struct writer_session *session = commit->session;
    struct zt_error error;
    bool announced;

    pthread_mutex_lock(&session->journal_lock);
    announced = writer_journal_announce(session, commit->is_in_place ? WRITER_DATA : WRITER_COMPACT,
                                        commit->publication.published.sha256, &error);
    pthread_mutex_unlock(&session->journal_lock);
    return announced || fail_store(commit, &error);
}

/* The components were hashed when they arrived. */
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

/* The model is already durable: if this cannot be recorded, the next start finds out. */
static void note_outcome(struct commit *commit)
{
    struct writer_session *session = commit->session;
    struct zt_error error;

    assert(commit->publication.stored == NULL);
    pthread_mutex_lock(&session->journal_lock);
    writer_session_commit(session, &commit->publication.published);
    if (!writer_journal_outcome(session, &error))
        log_write(LOG_LEVEL_WARN, "upload %s: committed, but not recorded: %s",
                  session->kept.entry.id, error.message);
    writer_journal_close(session);
    pthread_mutex_unlock(&session->journal_lock);
}

/* --- preconditions --- */

/* Joins the If-None-Match of both requests: neither list may match, so the joined one may not. */
static const char *join_lists(const char *a, const char *b, char **out_joined)
{
    size_t size;

    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    /* "*" forbids any model, so the other list adds nothing. */
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

/* If both requests have a condition of a kind that cannot be joined, the commit's condition is
 * checked here. All others are checked at the moment of publication. */
static bool check_own(struct commit *commit, const struct preconditions *asked)
{
    const struct preconditions *own = &commit->session->preconditions;
    struct preconditions now = {.if_match = own->if_match != NULL ? asked->if_match : NULL,
                                .if_unmodified_since = own->if_unmodified_since != NULL
                                                           ? asked->if_unmodified_since
                                                           : NULL};
    bool exists;

    return model_check_preconditions(commit->session->kept.server, NULL,
                                     commit->session->kept.entry.model, &now, &exists,
                                     commit->failure);
}

static bool set_preconditions(struct commit *commit, const struct preconditions *asked,
                              char **out_joined)
{
    const struct preconditions *own = &commit->session->preconditions;
    struct preconditions *all = &commit->publication.preconditions;
    bool is_whole;

    assert(*out_joined == NULL);
    all->if_match = own->if_match != NULL ? own->if_match : asked->if_match;
    all->if_unmodified_since =
        own->if_unmodified_since != NULL ? own->if_unmodified_since : asked->if_unmodified_since;
    all->if_none_match = join_lists(own->if_none_match, asked->if_none_match, out_joined);
    is_whole =
        all->if_none_match != NULL || (own->if_none_match == NULL && asked->if_none_match == NULL);
    return is_whole || failure_no_memory(commit->failure, "the preconditions");
}

/* --- the commit --- */

/* Only cuts the file named "data" in the upload's folder: a renamed file is a model. Returns false
 * if bytes remain after the components. */
static bool cut_open_data(struct commit *commit)
{
    struct failure ignored = {.is_set = false};
    struct commit again = {
        .session = commit->session, .layout = commit->layout, .failure = &ignored};
    const bool is_cut = open_data(&again) && cut(&again, again.data);

    assert(commit->is_in_place);
    staged_file_close(again.data);
    return is_cut;
}

/* An upload that stays open keeps "data", without manifest and footer; a published upload keeps
 * neither file. */
static void tidy_files(struct commit *commit, bool done)
{
    struct writer_session *session = commit->session;
    struct zt_error error;

    assert(!done || commit->publication.stored == NULL);
    staged_file_close(commit->data);
    staged_file_close(commit->publication.stored);
    if (!done && commit->is_in_place)
        session->is_dirty = !cut_open_data(commit);
    if (!commit->is_in_place && (done || withdraw(commit, &error)))
        (void)staging_folder_remove(session->kept.server->store->staging, session->kept.entry.id,
                                    done ? WRITER_DATA : WRITER_COMPACT, &error);
    writer_layout_free(&commit->layout);
}

static bool run(struct commit *commit, const struct preconditions *asked)
{
    char *joined = NULL;
    bool done = set_preconditions(commit, asked, &joined) && check_own(commit, asked) &&
                writer_layout_make(commit->session, &commit->layout, commit->failure) &&
                make_file(commit) && hash_file(commit) && announce(commit) &&
                publication_run(&commit->publication, commit->failure);

    if (done)
        note_outcome(commit);
    tidy_files(commit, done);
    free(joined);
    return done;
}

void writer_commit_complete(struct writer_session *session, struct failure *failure)
{
    struct published published;

    /* Commits that are repeated at the same time may try it more than once. */
    pthread_mutex_lock(&session->lock);
    assert(session->state == WRITER_COMMITTED || session->state == WRITER_DROPPED);
    published = session->published;
    pthread_mutex_unlock(&session->lock);
    publication_complete(session->kept.server, session->kept.entry.model, &published);
    pthread_mutex_lock(&session->lock);
    session->published.remains = published.remains;
    pthread_mutex_unlock(&session->lock);
    (void)remains_fail(&published.remains, "published", failure);
}

bool writer_commit(struct writer_session *session, const struct preconditions *preconditions,
                   const struct request *request, struct failure *failure)
{
    struct commit commit = {.session = session,
                            .publication = {.server = session->kept.server,
                                            .name = session->kept.entry.model,
                                            .covers = authorize_filter(request),
                                            .client = request->client,
                                            .decoded_sha256 = decoded_sha256,
                                            .context = session},
                            .failure = failure};
    bool done = run(&commit, preconditions);

    assert(done == !failure->is_set);
    metric_add(done ? METRIC_PUBLISHED_WRITER : METRIC_FAILED_WRITER, 1);
    if (done)
        kept_uploads_finish(&session->kept);
    else
        writer_round_reopen(session);
    return done && remains_fail(&commit.publication.published.remains, "published", failure);
}
