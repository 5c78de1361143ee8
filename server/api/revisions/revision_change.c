/* PUT and DELETE /v1/models/{model}/revisions/{name}: makes, moves and removes branches and
 * tags. Moving main restores the files of a commit.
 *
 * A branch or tag belongs to a repository, so the client must be allowed to use all of it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "api/revisions/handlers.h"
#include "api/revisions/revision_look.h"
#include "base/changes.h"
#include "http/exchange/authorize.h"
#include "http/exchange/json_body.h"
#include "http/exchange/problem.h"
#include "http/fields/conditional.h"
#include "input/json_read.h"
#include "versions/recording.h"

struct change {
    struct revision_look look; /* first; of the name that is changed */
    bool is_removal;
    bool was_run;
    bool is_main;
    bool is_tag;
    bool is_new;
    struct zt_text target; /* the revision that the name gets */
    char message[sizeof(((struct history_ref *)NULL)->message)];
    struct preconditions preconditions;
    enum problem problem; /* PROBLEM_COUNT: none */
    char why[STORE_WHY_SIZE];
};

static struct change *change_of(struct request *request)
{
    return request->context;
}

/* --- before the body --- */

static bool refuse_tags(struct request *request, const char *tags)
{
    if (tags == NULL || tag_list_is_valid(tags))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "If-Match and If-None-Match must be * or commits in quotes");
    return true;
}

/* Returns NULL if it has replied. */
static struct change *begin(struct request *request)
{
    struct change *change;

    if (!request->server->config->writable) {
        problem_reply(request, PROBLEM_READ_ONLY, "writing is turned off on this server");
        return NULL;
    }
    change = revision_look_new(request, sizeof(*change));
    if (change == NULL)
        return NULL;
    change->problem = PROBLEM_COUNT;
    change->is_main = zt_text_is(change->look.name, HISTORY_MAIN);
    change->preconditions = (struct preconditions){
        .if_match = request_header(request, "If-Match"),
        .if_none_match = request_header(request, "If-None-Match"),
    };
    if (change->look.history == NULL) {
        problem_reply(request, PROBLEM_CONFLICT,
                      "no revisions are kept, because versions.keep is not set");
        return NULL;
    }
    if (refuse_tags(request, change->preconditions.if_match) ||
        refuse_tags(request, change->preconditions.if_none_match))
        return NULL;
    return change;
}

void revision_put_begin(struct request *request)
{
    const struct change *change = begin(request);

    if (change == NULL)
        return;
    if (!history_ref_is_valid(change->look.name) || zt_text_is(change->look.name, "HEAD")) {
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "a branch or tag has a name that git allows, of at most 255 bytes, which is "
                      "neither HEAD nor a commit");
        return;
    }
    (void)json_body_refuse(request);
}

void revision_delete_begin(struct request *request)
{
    struct change *change = begin(request);

    if (change == NULL)
        return;
    change->is_removal = true;
    if (change->is_main)
        problem_reply(request, PROBLEM_CONFLICT,
                      "the branch main has the present files and cannot be removed");
}

/* --- the body; false: replied --- */

static bool refuse_body(struct request *request, const char *why)
{
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", why);
    return false;
}

static bool read_kind(struct request *request, const struct json_t *body, struct change *change)
{
    struct zt_text kind;

    switch (json_member_text(body, "kind", &kind)) {
    case JSON_ABSENT:
        change->is_tag = !change->is_main;
        return true;
    case JSON_FOUND:
        change->is_tag = zt_text_is(kind, "tag");
        if (!change->is_tag && !zt_text_is(kind, "branch"))
            break;
        return !(change->is_tag && change->is_main) ||
               refuse_body(request, "main is a branch and cannot be a tag");
    case JSON_OTHER:
        break;
    }
    return refuse_body(request, "kind must be \"tag\" or \"branch\"");
}

static bool read_message(struct request *request, const struct json_t *body, struct change *change)
{
    struct zt_text message;

    switch (json_member_text(body, "message", &message)) {
    case JSON_ABSENT:
        return true;
    case JSON_FOUND:
        if (message.length >= sizeof(change->message))
            break;
        memcpy(change->message, message.bytes, message.length);
        return true;
    case JSON_OTHER:
        break;
    }
    return refuse_body(request, "message must be a text of at most 511 bytes");
}

static bool read_members(struct request *request, const struct json_t *body, struct change *change)
{
    static const char *const known[] = {"commit", "kind", "message", NULL};
    const char *other = body != NULL ? json_member_other(body, known) : NULL;
    struct zt_text target;

    if (other != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "/%.64s: unknown member; use commit, kind or message", other);
        return false;
    }
    if (body == NULL || json_member_text(body, "commit", &target) != JSON_FOUND ||
        target.length == 0 || target.length >= HISTORY_REF_SIZE)
        return refuse_body(request, "the body must be {\"commit\": REVISION, \"kind\": \"tag\" or "
                                    "\"branch\"}");
    change->target.bytes = request_copy(request, target.bytes, target.length);
    change->target.length = target.length;
    if (change->target.bytes == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    return read_kind(request, body, change) && read_message(request, body, change);
}

static bool read_body(struct request *request, struct change *change)
{
    struct json_t *body;
    bool is_read;

    if (json_body_refuse_received(request))
        return false;
    body = json_object_read(json_body_text(request), NULL);
    is_read = read_members(request, body, change);
    json_object_free(body);
    return is_read;
}

/* --- on a worker; false: the change has a problem --- */

static bool fail(struct change *change, enum problem problem, const char *why)
{
    change->problem = problem;
    snprintf(change->why, sizeof(change->why), "%s", why);
    return false;
}

/* Fails with the history's error. ZT_ARGUMENT: something else was changed at the same time. */
static bool fail_status(struct change *change, enum zt_status status)
{
    if (status == ZT_ARGUMENT)
        return fail(change, PROBLEM_PRECONDITION_FAILED,
                    "the branch or tag has been changed meanwhile");
    if (status == ZT_NOT_FOUND)
        return fail(change, PROBLEM_REVISION_NOT_FOUND, change->look.error.message);
    if (status == ZT_UNSUPPORTED) /* A present file cannot be kept. */
        return fail(change, PROBLEM_CONFLICT, change->look.error.message);
    change->look.status = status;
    return false;
}

static bool check_rights(const struct request *request, struct change *change)
{
    const struct history_repo *repo = &change->look.repo;
    const struct zt_text name = zt_text_from(repo->name);
    const bool may = repo->is_root_model ? authorize_sees(request, name)
                                         : authorize_sees_whole_folder(request, name);

    return may || fail(change, PROBLEM_FORBIDDEN,
                       "this client may not use all files of the repository, to which branches "
                       "and tags belong");
}

static bool check_preconditions(struct change *change, bool exists)
{
    char etag[HISTORY_COMMIT_SIZE + 2] = "";
    char why[STORE_WHY_SIZE];

    if (exists)
        snprintf(etag, sizeof(etag), "\"%s\"", change->look.found.commit);
    if (precondition_check(&change->preconditions, exists ? etag : NULL, 0, false) ==
        PRECONDITION_PASS)
        return true;
    snprintf(why, sizeof(why), exists ? "the revision has the commit %s" : "there is no such %s",
             exists ? change->look.found.commit : "revision");
    return fail(change, PROBLEM_PRECONDITION_FAILED, why);
}

/* Finds the branch or tag that has the name. Returns false on failure. */
static bool look(struct change *change, bool *out_exists)
{
    struct revision_look *now = &change->look;

    revision_look_read(now);
    *out_exists = now->status == ZT_OK && !now->is_mirrored;
    if (now->status == ZT_NOT_FOUND)
        now->status = ZT_OK;
    if (now->is_mirrored || now->status == ZT_STALE)
        return fail(change, PROBLEM_CONFLICT, "the repository is mirrored and cannot be changed");
    return now->status == ZT_OK;
}

static bool set_main(struct request *request, struct change *change, const char *commit)
{
    struct history_commit made;
    char title[HISTORY_REF_SIZE + 16];
    const struct history_note note = {.client = request->client,
                                      .title = title,
                                      .message =
                                          change->message[0] != '\0' ? change->message : NULL};
    const bool is_conditional = preconditions_are_given(&change->preconditions);
    enum zt_status status;

    snprintf(title, sizeof(title), "Restore %.*s", (int)change->target.length,
             change->target.bytes);
    status = recording_restore(
        request->server, &change->look.repo,
        &(struct recording_target){commit, is_conditional ? change->look.found.commit : NULL},
        &note, &made, &change->look.error);
    return status == ZT_OK || fail_status(change, status);
}

static bool set_ref(struct change *change, const char *commit)
{
    struct history_ref ref = {.is_tag = change->is_tag};
    const bool is_conditional = preconditions_are_given(&change->preconditions);
    const char *expected = change->is_new ? "" : change->look.found.commit;
    enum zt_status status;

    if (!change->is_new && change->look.found.is_tag != change->is_tag)
        return fail(change, PROBLEM_CONFLICT,
                    change->is_tag ? "a branch has this name" : "a tag has this name");
    memcpy(ref.name, change->look.name.bytes, change->look.name.length);
    memcpy(ref.commit, commit, sizeof(ref.commit));
    memcpy(ref.message, change->message, sizeof(ref.message));
    status = history_set_ref(change->look.history, &change->look.repo, &ref,
                             is_conditional ? expected : NULL, &change->look.error);
    return status == ZT_OK || fail_status(change, status);
}

/* Records the files that other programs have put in the folder. Hashing them may take long. */
static bool record_present(struct request *request, struct change *change)
{
    struct recording recording;
    struct history_commit ignored;
    struct history_repo repo;
    enum zt_status status;

    if (!zt_text_is(change->target, HISTORY_MAIN) && !zt_text_is(change->target, "HEAD"))
        return true;
    history_repo_of_model(change->look.history, change->look.model, &repo);
    recording_prepare(request->server, &repo);
    status = recording_begin(&recording, request->server, &repo, &change->look.error);
    if (status == ZT_OK)
        status = recording_end(&recording, NULL, &ignored, &change->look.error);
    return status == ZT_OK || fail_status(change, status);
}

static bool put(struct request *request, struct change *change)
{
    struct history *history = change->look.history;
    struct history_found target;
    enum zt_status status;
    bool exists;

    if (!look(change, &exists) || !check_rights(request, change) ||
        !record_present(request, change) || !check_preconditions(change, exists))
        return false;
    change->is_new = !exists;
    status =
        history_find(history, &change->look.repo, change->target, &target, &change->look.error);
    if (status == ZT_NOT_FOUND)
        return fail(change, PROBLEM_REVISION_NOT_FOUND,
                    "the repository has no branch, tag or kept commit of this name");
    if (status != ZT_OK)
        return fail_status(change, status);
    return change->is_main ? set_main(request, change, target.commit)
                           : set_ref(change, target.commit);
}

static bool remove_ref(struct request *request, struct change *change)
{
    const struct history_found *found = &change->look.found;
    enum zt_status status;
    bool exists;

    if (!look(change, &exists) || !check_rights(request, change))
        return false;
    if (!exists)
        return fail(change, PROBLEM_REVISION_NOT_FOUND, "there is no branch or tag of this name");
    if (!check_preconditions(change, true))
        return false;
    if (!found->is_branch && !found->is_tag)
        return fail(change, PROBLEM_CONFLICT,
                    "a commit cannot be removed; it goes when versions.keep is exceeded");
    status = history_delete_ref(change->look.history, &change->look.repo, found->ref, found->is_tag,
                                &change->look.error);
    if (status == ZT_ARGUMENT)
        return fail(change, PROBLEM_CONFLICT, change->look.error.message);
    return status == ZT_OK || fail_status(change, status);
}

static void run(struct request *request)
{
    struct change *change = request->context;

    if (!(change->is_removal ? remove_ref(request, change) : put(request, change)))
        return;
    /* Files that only the former commit had are removed with the next collection. */
    atomic_fetch_add(&request->server->commits_recorded, 1);
    changes_note();
    if (!change->is_removal)
        revision_look_read(&change->look);
}

/* --- the handlers --- */

static enum outcome reply_failure(struct request *request, const struct change *change)
{
    if (change->problem != PROBLEM_COUNT)
        return problem_reply(request, change->problem, "%s", change->why);
    return problem_reply_error(request, &change->look.error);
}

static enum outcome work(struct request *request, struct change *change)
{
    change->was_run = true;
    return request_work_long(request, run);
}

enum outcome revision_put_handle(struct request *request)
{
    struct change *change = change_of(request);

    assert(change != NULL);
    if (!change->was_run)
        return read_body(request, change) ? work(request, change) : OUTCOME_READY;
    if (change->problem != PROBLEM_COUNT || change->look.status != ZT_OK)
        return reply_failure(request, change);
    return revision_look_reply(request, &change->look, change->is_new ? 201 : 200);
}

enum outcome revision_delete_handle(struct request *request)
{
    struct change *change = change_of(request);

    assert(change != NULL);
    if (!change->was_run)
        return work(request, change);
    if (change->problem != PROBLEM_COUNT || change->look.status != ZT_OK)
        return reply_failure(request, change);
    reply_empty(request, 204);
    return OUTCOME_READY;
}
