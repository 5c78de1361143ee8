/* Makes and deletes branches and tags, and squashes branches. main is the folder itself, so it can
 * only be squashed. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "api/json_reply.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/json_body.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/kept_commit.h"
#include "input/json_read.h"
#include "store/versions/versions_store.h"
#include "upload/shared/write_checks.h"

#define HEADS        "refs/heads/"
#define TAGS         "refs/tags/"
#define SQUASH_TITLE "Squash the history"

enum action { ACTION_MAKE, ACTION_DELETE, ACTION_SQUASH };

enum answer { ANSWER_DONE, ANSWER_NO_REPO, ANSWER_NO_REVISION, ANSWER_TAKEN, ANSWER_FAILED };

struct change {
    enum action action;
    struct history_repo repo;
    struct history_ref ref;
    struct zt_text from; /* the revision that it will point to */
    bool is_empty;       /* the branch begins without files */
    bool replaces;       /* the branch may exist */
    bool was_run;
    enum answer answer;
    struct zt_error error;
};

/* --- before the body --- */

/* Clients that accept an existing branch or tag understand 409 as one. */
static bool refuse_mirrored(struct request *request, struct zt_text repo)
{
    struct store *store = request->server->store;
    char text[HUB_REPO_SIZE];
    char why[STORE_WHY_SIZE];

    if (store->revisions == NULL || repo.length >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)repo.length, repo.bytes);
    if (!store->revisions->refuses(store, text, why))
        return false;
    problem_reply(request, PROBLEM_FORBIDDEN, "%s", why);
    return true;
}

/* Branches and tags concern all files of a repository. */
static bool refuse(struct request *request, struct hub_target *out_target)
{
    if (store_history(request->server->store) == NULL) {
        hub_unsupported_begin(request);
        return true;
    }
    return write_refuse_read_only(request) || !hub_target_read_whole(request, out_target) ||
           refuse_mirrored(request, out_target->repo) ||
           hub_refuse_repo(request, out_target->repo) ||
           authorize_refuse_folder(request, out_target->repo);
}

/* Returns true, having replied, unless a branch or tag may have the name. */
static bool refuse_name(struct request *request, struct zt_text name)
{
    if (history_ref_is_valid(name))
        return false;
    problem_reply(request, PROBLEM_INVALID_NAME,
                  "branches and tags are named as in git, and not like a commit");
    return true;
}

/* Returns NULL if it has replied. */
static struct change *begin(struct request *request, enum action action, bool is_tag,
                            struct hub_target *out_target)
{
    struct change *change;

    if (refuse(request, out_target))
        return NULL;
    change = request_new_context(request, sizeof(*change));
    if (change == NULL)
        return NULL;
    change->action = action;
    change->ref.is_tag = is_tag;
    hub_text_copy(out_target->repo, change->repo.name, sizeof(change->repo.name));
    return change;
}

/* Sets the name from the path or the body, also in its long form. Returns false if it has
 * replied. */
static bool set_name(struct request *request, struct change *change, struct zt_text name)
{
    const struct zt_text prefix = zt_text_from(change->ref.is_tag ? TAGS : HEADS);

    if (zt_text_starts_with(name, prefix))
        name = (struct zt_text){name.bytes + prefix.length, name.length - prefix.length};
    if (zt_text_is(name, "HEAD") && !change->ref.is_tag)
        name = zt_text_from(HISTORY_MAIN);
    if (refuse_name(request, name))
        return false;
    hub_text_copy(name, change->ref.name, sizeof(change->ref.name));
    return true;
}

static bool is_main(const struct change *change)
{
    return !change->ref.is_tag && strcmp(change->ref.name, HISTORY_MAIN) == 0;
}

void hub_tag_begin(struct request *request)
{
    struct hub_target target;
    struct change *change;

    if (request->method == METHOD_DELETE) {
        change = begin(request, ACTION_DELETE, true, &target);
        if (change != NULL)
            (void)set_name(request, change, target.revision);
        return;
    }
    change = begin(request, ACTION_MAKE, true, &target);
    if (change != NULL && !json_body_refuse(request))
        change->from = target.revision;
}

void hub_branch_begin(struct request *request)
{
    const bool deletes = request->method == METHOD_DELETE;
    struct hub_target target;
    struct change *change = begin(request, deletes ? ACTION_DELETE : ACTION_MAKE, false, &target);

    if (change == NULL || !set_name(request, change, target.revision))
        return;
    if (deletes && is_main(change))
        problem_reply(request, PROBLEM_FORBIDDEN, "the branch main cannot be deleted");
    else if (!deletes)
        (void)json_body_refuse(request);
}

void hub_squash_begin(struct request *request)
{
    struct hub_target target;
    struct change *change = begin(request, ACTION_SQUASH, false, &target);

    if (change != NULL && set_name(request, change, target.revision))
        (void)json_body_refuse(request);
}

/* --- the body --- */

static bool read_tag(struct request *request, struct change *change, const struct json_t *object)
{
    struct zt_text text;

    if (json_member_text(object, "message", &text) == JSON_FOUND)
        hub_text_copy(text, change->ref.message, sizeof(change->ref.message));
    if (json_member_text(object, "tag", &text) == JSON_FOUND)
        return set_name(request, change, text);
    problem_reply(request, PROBLEM_INVALID_REQUEST, "send {\"tag\": NAME}");
    return false;
}

/* The texts of the body live as long as the object. */
static bool read_branch(struct request *request, struct change *change, const struct json_t *object)
{
    struct zt_text text = {"main", 4};
    const char *copy;

    change->is_empty = json_member_is_true(object, "emptyBranch");
    change->replaces = json_member_is_true(object, "overwrite");
    (void)json_member_text(object, "startingPoint", &text);
    copy = request_copy(request, text.bytes, text.length);
    if (copy == NULL)
        problem_reply_no_memory(request);
    change->from = (struct zt_text){copy, text.length};
    return copy != NULL;
}

static bool read_squash(struct change *change, const struct json_t *object)
{
    struct zt_text text = zt_text_from(SQUASH_TITLE);

    (void)json_member_text(object, "message", &text);
    hub_text_copy(text, change->ref.message, sizeof(change->ref.message));
    return true;
}

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct change *change)
{
    const struct zt_text empty = zt_text_from("{}");
    struct json_t *object;
    struct zt_text text;
    bool is_read;

    if (json_body_refuse_received(request))
        return false;
    text = json_body_text(request);
    object = json_object_read(text.length > 0 ? text : empty, NULL);
    if (object == NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "the body is not a JSON object");
        return false;
    }
    if (change->action == ACTION_SQUASH)
        is_read = read_squash(change, object);
    else
        is_read = change->ref.is_tag ? read_tag(request, change, object)
                                     : read_branch(request, change, object);
    json_object_free(object);
    return is_read;
}

/* --- on a worker --- */

static enum answer answer_of(enum zt_status status)
{
    switch (status) {
    case ZT_OK:
        return ANSWER_DONE;
    case ZT_NOT_FOUND:
        return ANSWER_NO_REVISION;
    case ZT_ARGUMENT:
        return ANSWER_TAKEN;
    default:
        return ANSWER_FAILED;
    }
}

/* Begins a branch without files. */
static enum zt_status make_empty(struct request *request, struct change *change)
{
    struct history *history = store_history(request->server->store);
    char ref[HISTORY_REF_SIZE + sizeof(HEADS)];
    struct history_found found;
    enum zt_status status;

    snprintf(ref, sizeof(ref), HEADS "%s", change->ref.name);
    status = history_find(history, &change->repo, zt_text_from(ref), &found, &change->error);
    if (status == ZT_OK && !change->replaces)
        return zt_fail(&change->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the branch exists");
    return status == ZT_OK || status == ZT_NOT_FOUND
               ? kept_commit_make_empty(request, &change->repo, change->ref.name, &change->error)
               : status;
}

static enum zt_status make(struct request *request, struct change *change)
{
    struct history *history = store_history(request->server->store);
    enum zt_status status;

    assert(change->action == ACTION_MAKE && change->ref.name[0] != '\0');
    if (is_main(change))
        return zt_fail(&change->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "main always exists");
    if (change->is_empty)
        return make_empty(request, change);
    status =
        kept_commit_find(request, &change->repo, change->from, change->ref.commit, &change->error);
    return status != ZT_OK ? status
                           : history_set_ref(history, &change->repo, &change->ref,
                                             change->replaces ? NULL : "", &change->error);
}

static enum zt_status squash(struct request *request, struct change *change)
{
    struct history *history = store_history(request->server->store);
    const struct history_note note = {.client = request->client, .title = change->ref.message};
    struct history_found found;
    enum zt_status status = kept_commit_find(request, &change->repo, zt_text_from(change->ref.name),
                                             change->ref.commit, &change->error);

    if (status == ZT_OK)
        status = history_find(history, &change->repo, zt_text_from(change->ref.name), &found,
                              &change->error);
    if (status == ZT_OK && !found.is_branch)
        return zt_fail(&change->error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "this is not a branch");
    return status != ZT_OK
               ? status
               : history_squash(history, &change->repo, change->ref.name, &note, &change->error);
}

static void work(struct request *request)
{
    struct change *change = request->context;
    struct history *history = store_history(request->server->store);

    assert(history != NULL && change->was_run);
    if (kept_commit_has_no_repo(request, &change->repo)) {
        change->answer = ANSWER_NO_REPO;
        return;
    }
    switch (change->action) {
    case ACTION_MAKE:
        change->answer = answer_of(make(request, change));
        break;
    case ACTION_DELETE:
        change->answer = answer_of(history_delete_ref(history, &change->repo, change->ref.name,
                                                      change->ref.is_tag, &change->error));
        break;
    case ACTION_SQUASH:
        change->answer = answer_of(squash(request, change));
        break;
    }
    /* Files that only the former commit had are removed with the next collection. */
    atomic_fetch_add(&request->server->commits_recorded, 1);
}

/* --- the response --- */

static enum outcome reply_done(struct request *request)
{
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    hub_json_flag(json, "success", true);
    json_object_end(json);
    return json_reply_send(request, json);
}

static enum outcome reply(struct request *request, const struct change *change)
{
    switch (change->answer) {
    case ANSWER_DONE:
        return reply_done(request);
    case ANSWER_NO_REPO:
        return hub_reply_no_repo(request);
    case ANSWER_NO_REVISION:
        return hub_reply_no_revision(request);
    case ANSWER_TAKEN:
        if (is_main(change) && change->replaces)
            return problem_reply(request, PROBLEM_FORBIDDEN,
                                 "main is the folder itself: commit to it, or restore a commit");
        return problem_reply(request, PROBLEM_CONFLICT, "the %s %s already exists",
                             change->ref.is_tag ? "tag" : "branch", change->ref.name);
    case ANSWER_FAILED:
        break;
    }
    return problem_reply(request, problem_of_write(&change->error), "%s", change->error.message);
}

enum outcome hub_refs_handle(struct request *request)
{
    struct change *change = request->context;

    if (change->was_run)
        return reply(request, change);
    change->was_run = true;
    if (change->action != ACTION_DELETE && !read_body(request, change))
        return OUTCOME_READY;
    return request_work_long(request, work);
}
