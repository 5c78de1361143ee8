/* Finds repositories and their commits: in the index, in the inner store, at an upstream. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/workers.h"
#include "store/mirror/mirror_store.h"
#include "store/store_here.h"

/* A repository's name, a space and a revision. */
#define QUESTION_SIZE (UPSTREAM_REPOSITORY_SIZE + UPSTREAM_REVISION_SIZE)
/* How long the known commit counts as current after the upstream failed to answer. */
#define AWAY_MS 5000
/* The current commit is looked up this often if its list cannot be read because it has moved. */
#define ASK_TRIES 3

/* --- the inner store --- */

static bool stop_at_first(void *context, const char *path, const struct file_identity *identity)
{
    (void)path;
    (void)identity;
    *(bool *)context = true;
    return false;
}

/* Returns ZT_OK if the inner store has a folder of this name, ZT_NOT_FOUND if not. */
static enum zt_status look_inside(const struct mirror *mirror, const char *name,
                                  struct zt_error *error)
{
    struct store *inner = mirror->base.inner;
    bool is_seen = false;

    return inner->ops->walk(inner, name, false, stop_at_first, &is_seen, error);
}

/* --- revisions --- */

static bool is_main(struct zt_text revision)
{
    return revision.length == 0 || zt_text_is(revision, "main") || zt_text_is(revision, "HEAD") ||
           zt_text_is(revision, "refs/heads/main");
}

static int64_t belief_ms(const struct mirror_upstream *upstream)
{
    return 1000 * config_number(&upstream->config->revalidate_s);
}

static struct mirror_branch *find_branch(struct mirror_repository *repository,
                                         struct zt_text revision)
{
    for (unsigned i = 0; i < MIRROR_BRANCHES_MAX; i++)
        if (repository->branches[i].name[0] != '\0' &&
            zt_text_is(revision, repository->branches[i].name))
            return &repository->branches[i];
    return NULL;
}

static void keep_branch(struct mirror_repository *repository, struct zt_text revision,
                        const char *commit, int64_t until_ms)
{
    struct mirror_branch *branch = find_branch(repository, revision);

    if (revision.length >= sizeof(branch->name))
        return;
    if (branch == NULL) {
        branch = &repository->branches[repository->next_branch];
        repository->next_branch = (repository->next_branch + 1) % MIRROR_BRANCHES_MAX;
    }
    snprintf(branch->name, sizeof(branch->name), "%.*s", (int)revision.length, revision.bytes);
    snprintf(branch->commit, sizeof(branch->commit), "%s", commit);
    branch->believed_until_ms = until_ms;
}

/* The known version of a revision. */
struct known {
    struct mirror_version *version; /* borrowed; NULL: nothing */
    bool is_believed;               /* it need not be asked for */
};

/* With the lock. */
static struct known find_known(struct mirror_repository *repository, struct zt_text revision,
                               int64_t now_ms)
{
    struct known known = {NULL, false};
    const struct mirror_branch *branch;

    if (repository == NULL)
        return known;
    if (is_main(revision)) {
        known.version = mirror_repository_current(repository);
        known.is_believed = known.version != NULL && now_ms < repository->believed_until_ms;
    } else if (upstream_is_commit(revision)) {
        known.version = mirror_repository_version(repository, revision);
        known.is_believed = known.version != NULL;
    } else if ((branch = find_branch(repository, revision)) != NULL) {
        known.version = mirror_repository_version(repository, zt_text_from(branch->commit));
        known.is_believed = known.version != NULL && now_ms < branch->believed_until_ms;
    }
    return known;
}

/* --- asking --- */

/* One question to an upstream. */
struct question {
    struct mirror *mirror;
    struct mirror_upstream *upstream;
    unsigned number; /* of the upstream */
    const char *repository;
    struct zt_text revision;
};

void mirror_note_changes(struct mirror *mirror, const char *repository,
                         const struct mirror_version *version)
{
    char path[MODEL_PATH_SIZE];

    for (size_t i = 0; version != NULL && i < version->count; i++)
        if (version->entries[i].is_asked &&
            mirror_name_join(repository, version->entries[i].path, path))
            mirror_changes_add(&mirror->changes, path);
}

/* With the lock. Adds what was found, and returns the version as a reference. */
static struct mirror_version *take(const struct question *question,
                                   const struct upstream_listing *listing, int64_t modified_ns)
{
    struct mirror_index *index = &question->mirror->index;
    struct mirror_repository *repository =
        mirror_index_add(index, question->repository, question->number);
    struct mirror_version *current;
    struct mirror_version *version;
    struct mirror_version *before;

    if (repository == NULL)
        return NULL;
    current = mirror_repository_current(repository);
    before = current != NULL ? mirror_version_hold(current) : NULL;
    version = mirror_version_make(listing, modified_ns, before);
    if (version == NULL) {
        mirror_version_release(before);
        return NULL;
    }
    mirror_index_put(index, repository, version, is_main(question->revision));
    version = mirror_repository_version(repository, zt_text_from(listing->commit));
    assert(version != NULL);
    if (is_main(question->revision) && before != version) {
        mirror_note_changes(question->mirror, repository->name, before);
        mirror_note_changes(question->mirror, repository->name, version);
    }
    mirror_version_release(before);
    return mirror_version_hold(version);
}

/* With the lock. */
static void believe(const struct question *question, const char *commit)
{
    struct mirror_repository *repository =
        mirror_index_find(&question->mirror->index, zt_text_from(question->repository));
    const int64_t until_ms = clock_ms() + belief_ms(question->upstream);

    if (repository == NULL)
        return;
    repository->is_gone_upstream = false;
    if (is_main(question->revision)) {
        repository->believed_until_ms = until_ms;
        repository->checked_s = clock_wall_ns() / CLOCK_NS_PER_S;
    } else if (!upstream_is_commit(question->revision))
        keep_branch(repository, question->revision, commit, until_ms);
}

void mirror_doubt(struct mirror *mirror, const char *name, struct zt_text revision)
{
    struct mirror_repository *repository;
    struct mirror_branch *branch;

    pthread_mutex_lock(&mirror->index.lock);
    repository = mirror_index_find(&mirror->index, zt_text_from(name));
    branch = repository != NULL ? find_branch(repository, revision) : NULL;
    if (repository != NULL && is_main(revision))
        repository->believed_until_ms = 0;
    if (branch != NULL)
        branch->believed_until_ms = 0;
    pthread_mutex_unlock(&mirror->index.lock);
}

/* Answers with a commit whose list is known. Returns a reference, or NULL. */
static struct mirror_version *use_known(const struct question *question, const char *commit)
{
    struct mirror_index *index = &question->mirror->index;
    struct mirror_repository *repository;
    struct mirror_version *version = NULL;
    struct mirror_version *before = NULL;
    bool has_moved = false;

    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(question->repository));
    if (repository != NULL)
        version = mirror_repository_version(repository, zt_text_from(commit));
    if (version != NULL) {
        mirror_version_hold(version);
        before = mirror_repository_current(repository);
        has_moved = is_main(question->revision) && before != version;
        if (has_moved) {
            mirror_version_hold(version);
            mirror_note_changes(question->mirror, repository->name, before);
            mirror_index_put(index, repository, version, true);
            mirror_note_changes(question->mirror, repository->name, version);
        }
        believe(question, commit);
    }
    pthread_mutex_unlock(&index->lock);
    if (has_moved)
        mirror_index_save(index, question->repository);
    return version;
}

/* Returns ZT_NOT_FOUND, and forgets the repository, if a writer has taken its name meanwhile. */
static enum zt_status look_again(const struct question *question, struct mirror_version **version,
                                 struct zt_error *error)
{
    if (look_inside(question->mirror, question->repository, error) != ZT_OK)
        return ZT_OK;
    mirror_version_release(*version);
    *version = NULL;
    mirror_give_up(question->mirror, question->repository);
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "%s is not mirrored",
                   question->repository);
}

/* Asks for the commit, and for its list unless that is known. Fails with ZT_STALE also if the
 * commit changes meanwhile. */
static enum zt_status ask_once(const struct question *question, struct mirror_version **out_version,
                               struct zt_error *error)
{
    struct mirror_index *index = &question->mirror->index;
    struct upstream *upstream = question->upstream->upstream;
    const struct zt_text main_branch = zt_text_from("main");
    const bool is_new =
        mirror_known_upstream(question->mirror, zt_text_from(question->repository)) == UINT_MAX;
    struct upstream_listing *listing = NULL;
    char commit[UPSTREAM_COMMIT_SIZE];
    int64_t modified_ns = 0;
    enum zt_status status =
        upstream_find_commit(upstream, question->repository,
                             is_main(question->revision) ? main_branch : question->revision, commit,
                             &modified_ns, error);

    if (status != ZT_OK)
        return status;
    *out_version = use_known(question, commit);
    if (*out_version != NULL)
        return ZT_OK;
    status = upstream_list(upstream, question->repository, commit, &listing, error);
    if (status != ZT_OK)
        return status;
    pthread_mutex_lock(&index->lock);
    *out_version = take(question, listing, modified_ns);
    if (*out_version != NULL)
        believe(question, commit);
    pthread_mutex_unlock(&index->lock);
    upstream_listing_free(listing);
    if (*out_version == NULL)
        return zt_fail_memory(error, "a mirrored repository");
    mirror_index_save(index, question->repository);
    return is_new ? look_again(question, out_version, error) : ZT_OK;
}

static enum zt_status ask(const struct question *question, struct mirror_version **out_version,
                          struct zt_error *error)
{
    enum zt_status status = ask_once(question, out_version, error);

    for (unsigned i = 1; i < ASK_TRIES && status == ZT_STALE && is_main(question->revision); i++)
        status = ask_once(question, out_version, error);
    return status;
}

/* The known versions are still served. */
static void note_failure(const struct question *question, enum zt_status status,
                         const struct zt_error *error)
{
    struct mirror_index *index = &question->mirror->index;
    struct mirror_repository *repository;
    const int64_t now_ms = clock_ms();
    const int64_t pause_ms = status == ZT_UNAVAILABLE ? AWAY_MS : belief_ms(question->upstream);
    struct mirror_branch *branch;

    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(question->repository));
    if (repository != NULL && is_main(question->revision))
        repository->believed_until_ms = now_ms + pause_ms;
    branch = repository != NULL ? find_branch(repository, question->revision) : NULL;
    if (branch != NULL)
        branch->believed_until_ms = now_ms + pause_ms;
    if (repository != NULL && status == ZT_NOT_FOUND && !repository->is_gone_upstream) {
        repository->is_gone_upstream = true;
        log_write(LOG_LEVEL_WARN, "%s is no longer at %s; what was fetched is kept and served: %s",
                  repository->name, upstream_url(question->upstream->upstream), error->message);
    }
    pthread_mutex_unlock(&index->lock);
}

/* --- failures of lookups --- */

static struct mirror_failure *failure_of(struct mirror *mirror, const char *name)
{
    for (unsigned i = 0; i < MIRROR_FAILURES; i++)
        if (mirror->failures[i].at_ms != 0 && strcmp(mirror->failures[i].name, name) == 0)
            return &mirror->failures[i];
    return NULL;
}

void mirror_keep_failure(struct mirror *mirror, const char *name, const struct zt_error *error)
{
    struct mirror_failure *failure;

    pthread_mutex_lock(&mirror->sought_lock);
    failure = failure_of(mirror, name);
    if (failure == NULL && error != NULL) {
        failure = &mirror->failures[mirror->next_failure];
        mirror->next_failure = (mirror->next_failure + 1) % MIRROR_FAILURES;
        snprintf(failure->name, sizeof(failure->name), "%s", name);
    }
    if (failure != NULL)
        failure->at_ms = error != NULL ? clock_ms() : 0;
    if (error != NULL)
        failure->error = *error;
    pthread_mutex_unlock(&mirror->sought_lock);
}

bool mirror_find_failure(struct mirror *mirror, const char *name, struct zt_error *out_error)
{
    const struct mirror_failure *failure;
    int64_t passed_ms;
    bool is_recent;

    pthread_mutex_lock(&mirror->sought_lock);
    failure = failure_of(mirror, name);
    passed_ms = failure != NULL ? clock_ms() - failure->at_ms : MIRROR_FAILURE_MS;
    is_recent = passed_ms < MIRROR_FAILURE_MS;
    if (is_recent) {
        *out_error = failure->error;
        out_error->pause_ms -=
            passed_ms < out_error->pause_ms ? (uint32_t)passed_ms : out_error->pause_ms;
    }
    pthread_mutex_unlock(&mirror->sought_lock);
    return is_recent;
}

/* With the lock. Only one thread asks again what is known. */
static bool begin_check(struct mirror_repository *repository)
{
    if (repository->is_being_checked)
        return false;
    repository->is_being_checked = true;
    return true;
}

static void end_check(const struct question *question)
{
    struct mirror_index *index = &question->mirror->index;
    struct mirror_repository *repository;

    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(question->repository));
    if (repository != NULL)
        repository->is_being_checked = false;
    pthread_mutex_unlock(&index->lock);
}

/* Returns a reference to the known version of a revision if no lookup is needed, or NULL. */
static struct mirror_version *hold_believed(const struct question *question)
{
    struct mirror_index *index = &question->mirror->index;
    struct mirror_version *version = NULL;
    struct known known;

    pthread_mutex_lock(&index->lock);
    known = find_known(mirror_index_find(index, zt_text_from(question->repository)),
                       question->revision, clock_ms());
    if (known.is_believed)
        version = mirror_version_hold(known.version);
    pthread_mutex_unlock(&index->lock);
    return version;
}

/* Runs on the only thread that asks. Another thread may have got the answer just before. */
static void answer_question(void *context, struct mirror_answer *out_answer)
{
    const struct question *question = context;

    out_answer->version = hold_believed(question);
    out_answer->status = ZT_OK;
    if (out_answer->version != NULL)
        return;
    out_answer->status = ask(question, &out_answer->version, &out_answer->error);
    if (out_answer->status != ZT_OK)
        note_failure(question, out_answer->status, &out_answer->error);
    mirror_keep_failure(question->mirror, question->repository,
                        out_answer->status == ZT_UNAVAILABLE ? &out_answer->error : NULL);
}

static void ask_in_turn(struct question *question, struct mirror_answer *out_answer)
{
    char name[QUESTION_SIZE];

    if (is_main(question->revision))
        question->revision = zt_text_from("main");
    if (snprintf(name, sizeof(name), "%s %.*s", question->repository,
                 (int)question->revision.length, question->revision.bytes) < (int)sizeof(name)) {
        mirror_turns_ask(&question->mirror->turns, name, answer_question, question, out_answer);
        return;
    }
    out_answer->version = NULL;
    out_answer->status =
        zt_fail(&out_answer->error, ZT_STALE, NULL, ZT_NO_OFFSET, "no revision has so long a name");
}

/* Finds a revision of a repository that an upstream has or may have. */
static enum zt_status find_at(struct question *question, struct mirror_version **out_version,
                              struct zt_error *error)
{
    struct mirror_index *index = &question->mirror->index;
    struct mirror_version *known_version = NULL;
    struct mirror_repository *repository;
    struct mirror_answer answer;
    bool is_mine = false;
    struct known known;

    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(question->repository));
    known = find_known(repository, question->revision, clock_ms());
    if (repository != NULL)
        recency_touch(&index->recency, &repository->link);
    if (known.version != NULL) {
        known_version = mirror_version_hold(known.version);
        is_mine = !known.is_believed && begin_check(repository);
    }
    pthread_mutex_unlock(&index->lock);
    *out_version = known_version;
    if (known_version != NULL && !is_mine)
        return ZT_OK;
    ask_in_turn(question, &answer);
    if (is_mine)
        end_check(question);
    if (answer.status == ZT_OK) {
        mirror_version_release(known_version);
        *out_version = answer.version;
    }
    if (answer.status == ZT_OK || known_version != NULL)
        return ZT_OK;
    if (error != NULL)
        *error = answer.error;
    return answer.status;
}

/* --- in the background --- */

struct recheck {
    struct job job; /* first */
    struct question question;
    char repository[UPSTREAM_REPOSITORY_SIZE];
};

static void run_recheck(struct job *job)
{
    struct recheck *recheck = (struct recheck *)job;
    struct mirror_answer answer;

    ask_in_turn(&recheck->question, &answer);
    end_check(&recheck->question);
    mirror_version_release(answer.version);
}

static void end_recheck(struct job *job)
{
    free(job);
}

void mirror_recheck(struct mirror *mirror, const char *name)
{
    struct mirror_repository *repository;
    struct recheck *recheck = NULL;

    pthread_mutex_lock(&mirror->index.lock);
    repository = mirror_index_find(&mirror->index, zt_text_from(name));
    if (repository != NULL && repository->has_current && !repository->is_being_checked &&
        clock_ms() >= repository->believed_until_ms)
        recheck = calloc(1, sizeof(*recheck));
    if (recheck != NULL) {
        (void)begin_check(repository);
        recheck->job = (struct job){.run = run_recheck, .done = end_recheck};
        recheck->question = (struct question){.mirror = mirror,
                                              .upstream = &mirror->upstreams[repository->upstream],
                                              .number = repository->upstream,
                                              .repository = recheck->repository,
                                              .revision = zt_text_from("main")};
        memcpy(recheck->repository, repository->name, sizeof(recheck->repository));
    }
    pthread_mutex_unlock(&mirror->index.lock);
    if (recheck != NULL)
        workers_submit_long(mirror->waiters, &recheck->job);
}

/* --- which upstream --- */

unsigned mirror_known_upstream(struct mirror *mirror, struct zt_text name)
{
    const struct mirror_repository *repository;
    unsigned number;

    pthread_mutex_lock(&mirror->index.lock);
    repository = mirror_index_find(&mirror->index, name);
    number = repository != NULL ? repository->upstream : UINT_MAX;
    pthread_mutex_unlock(&mirror->index.lock);
    return number;
}

unsigned mirror_matching_upstream(const struct mirror *mirror, struct zt_text name)
{
    for (unsigned i = 0; i < mirror->upstream_count; i++)
        if (upstream_matches(mirror->upstreams[i].upstream, name))
            return i;
    return UINT_MAX;
}

/* Returns ZT_NOT_FOUND if the repository belongs to the inner store, or does not exist. */
static enum zt_status choose_upstream(struct mirror *mirror, const char *repository,
                                      unsigned *out_number, struct zt_error *error)
{
    const struct zt_text name = zt_text_from(repository);
    enum zt_status status;

    *out_number = mirror_known_upstream(mirror, name);
    if (*out_number != UINT_MAX)
        return ZT_OK;
    *out_number = store_here_only() ? UINT_MAX : mirror_matching_upstream(mirror, name);
    if (*out_number == UINT_MAX || !mirror_repository_is_valid(name))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no upstream has %s", repository);
    status = look_inside(mirror, repository, error);
    if (status == ZT_OK)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "%s is not mirrored", repository);
    return status == ZT_NOT_FOUND ? ZT_OK : status;
}

enum zt_status mirror_find_revision(struct mirror *mirror, const char *repository,
                                    struct zt_text revision, struct mirror_found *out_found,
                                    struct zt_error *error)
{
    struct question question = {.mirror = mirror, .repository = repository, .revision = revision};
    enum zt_status status = choose_upstream(mirror, repository, &question.number, error);
    const struct mirror_repository *known;

    *out_found = (struct mirror_found){.version = NULL};
    if (status != ZT_OK)
        return status;
    out_found->upstream = question.number;
    question.upstream = &mirror->upstreams[question.number];
    status = find_at(&question, &out_found->version, error);
    if (status != ZT_OK)
        return status;
    pthread_mutex_lock(&mirror->index.lock);
    known = mirror_index_find(&mirror->index, zt_text_from(repository));
    out_found->is_current = known != NULL && mirror_repository_current(known) == out_found->version;
    pthread_mutex_unlock(&mirror->index.lock);
    return ZT_OK;
}
