#include "http/revisions/revision.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "catalog/catalog.h"
#include "http/exchange/authorize.h"
#include "http/exchange/base_url.h"
#include "http/exchange/problem.h"
#include "store/versions/versions_store.h"

/* Messages show only the first bytes. */
#define SHOWN_BYTES 256
/* Parts of the names of mirrored repositories. */
#define REPOSITORY_PARTS 2

static int shown(struct zt_text text)
{
    return (int)(text.length < SHOWN_BYTES ? text.length : SHOWN_BYTES);
}

/* The name of a model in the root is not below its repository. */
bool revision_store_name(const struct history_repo *repo, const char *commit, struct zt_text name,
                         char out_name[MODEL_PATH_SIZE])
{
    const size_t skipped = repo->is_root_model ? 0 : strlen(repo->name) + 1;
    const bool has_rest = skipped < name.length;
    const int length =
        snprintf(out_name, MODEL_PATH_SIZE, "%s@%s%s%.*s", repo->name, commit, has_rest ? "/" : "",
                 has_rest ? (int)(name.length - skipped) : 0, has_rest ? name.bytes + skipped : "");

    return length > 0 && length < MODEL_PATH_SIZE;
}

/* --- finding, on a worker --- */

static enum zt_status fail_name(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                   "the name at this revision is too long");
}

/* A folder has the repository of the files in it. */
static bool find_repo(struct history *history, struct zt_text name, enum revision_kind kind,
                      struct history_repo *out_repo)
{
    char path[MODEL_PATH_SIZE];
    const int length = snprintf(path, sizeof(path), "%.*s%s", (int)name.length, name.bytes,
                                kind == REVISION_OF_FOLDER ? "/x" : "");

    if (kind == REVISION_OF_MODEL)
        history_repo_of_model(history, name, out_repo);
    else
        history_repo_of_path(history, path, out_repo);
    return length > 0 && length < (int)sizeof(path);
}

static enum zt_status find_kept(struct history *history, struct zt_text name,
                                enum revision_kind kind, struct zt_text revision,
                                struct revision_found *out_found, struct zt_error *error)
{
    struct history_repo repo;
    struct history_found found;
    enum zt_status status;

    if (!find_repo(history, name, kind, &repo))
        return fail_name(error);
    status = history_find(history, &repo, revision, &found, error);
    if (status != ZT_OK)
        return status;
    memcpy(out_found->commit, found.commit, sizeof(found.commit));
    return revision_store_name(&repo, found.commit, name, out_found->name) ? ZT_OK
                                                                           : fail_name(error);
}

/* Returns the length of so many parts of a name; 0 if it has no more than these. */
static size_t length_of_parts(struct zt_text name, unsigned parts)
{
    size_t at = 0;

    while (at < name.length) {
        if (name.bytes[at] == '/' && --parts == 0)
            return at;
        at++;
    }
    return 0;
}

/* Returns ZT_STALE if the repository is mirrored and has no such revision. */
static enum zt_status find_mirrored(struct store *store, struct zt_text name,
                                    struct zt_text revision, struct revision_found *out_found,
                                    struct zt_error *error)
{
    enum zt_status status = ZT_NOT_FOUND;

    for (unsigned parts = REPOSITORY_PARTS; parts > 0 && status == ZT_NOT_FOUND; parts--) {
        const size_t length = length_of_parts(name, parts);
        char repository[MODEL_PATH_SIZE];
        struct store_revision found;

        if (length == 0 || length >= sizeof(repository))
            continue;
        snprintf(repository, sizeof(repository), "%.*s", (int)length, name.bytes);
        status = store->revisions->find(store, repository, revision, &found, error);
        if (status != ZT_OK)
            continue;
        memcpy(out_found->commit, found.commit, sizeof(out_found->commit));
        if (snprintf(out_found->name, sizeof(out_found->name), "%s%.*s", found.folder,
                     (int)(name.length - length),
                     name.bytes + length) >= (int)sizeof(out_found->name))
            return fail_name(error);
    }
    return status;
}

enum zt_status revision_look_up(struct server *server, struct zt_text name, enum revision_kind kind,
                                struct zt_text revision, struct revision_found *out_found,
                                struct zt_error *error)
{
    struct store *store = server->store;
    struct history *history = store_history(store);
    struct zt_error ignored;
    enum zt_status status = ZT_NOT_FOUND;

    if (history != NULL)
        status = find_kept(history, name, kind, revision, out_found, error);
    if (history != NULL && status == ZT_NOT_FOUND && kind == REVISION_OF_FILE)
        status = find_kept(history, name, REVISION_OF_FOLDER, revision, out_found, error);
    if (status == ZT_NOT_FOUND && store->revisions != NULL) {
        status = find_mirrored(store, name, revision, out_found, &ignored);
        if (status != ZT_OK && status != ZT_NOT_FOUND && status != ZT_STALE)
            *error = ignored;
    }
    if (status != ZT_NOT_FOUND && status != ZT_STALE)
        return status;
    if (history == NULL && status == ZT_NOT_FOUND)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "no revisions are kept, because versions.keep is not set");
    return zt_fail(error, status, NULL, ZT_NO_OFFSET,
                   "%.*s has no branch, tag or kept commit named %.*s", shown(name), name.bytes,
                   shown(revision), revision.bytes);
}

/* --- requests --- */

struct revision_search {
    struct zt_text name;
    struct zt_text revision;
    enum revision_kind kind;
    enum zt_status status;
    struct revision_found found;
    struct zt_error error;
};

/* The branch main is the folder itself, also before it has a commit. */
static bool is_folder_itself(const struct revision_search *search)
{
    return search->status == ZT_NOT_FOUND && model_name_is_valid(search->name) &&
           (zt_text_is(search->revision, HISTORY_MAIN) || zt_text_is(search->revision, "HEAD"));
}

static void find(struct request *request)
{
    struct revision_search *search = request->revision_search;
    struct revision_found *found = &search->found;

    search->status = revision_look_up(request->server, search->name, search->kind, search->revision,
                                      found, &search->error);
    if (store_history(request->server->store) == NULL || !is_folder_itself(search))
        return;
    search->status = ZT_OK;
    found->commit[0] = '\0';
    snprintf(found->name, sizeof(found->name), "%.*s", (int)search->name.length,
             search->name.bytes);
}

enum outcome revision_reply_failure(struct request *request, const struct zt_error *error)
{
    switch (error->status) {
    case ZT_NOT_FOUND:
    case ZT_STALE:
        return problem_reply(request, PROBLEM_REVISION_NOT_FOUND, "%s", error->message);
    case ZT_UNAVAILABLE:
        return problem_reply_unavailable(request, request->names[0]);
    default:
        return problem_reply_error(request, error);
    }
}

/* Returns false if it has replied, or waits. */
static bool run(struct request *request, struct zt_text revision, enum revision_kind kind,
                enum outcome *out_outcome)
{
    struct revision_search *search = request->revision_search;

    *out_outcome = OUTCOME_READY;
    if (search == NULL) {
        search = request_new_memory(request, sizeof(*search));
        if (search == NULL)
            return false;
        *search =
            (struct revision_search){.name = request->names[0], .revision = revision, .kind = kind};
        request->revision_search = search;
        *out_outcome = request_work(request, find);
        return false;
    }
    if (search->status != ZT_OK)
        return false;
    request->names[0] = zt_text_from(search->found.name);
    request->commit = search->found.commit[0] != '\0' ? search->found.commit : NULL;
    return true;
}

/* Names the commit of a model that is asked for by the store's name. */
static void note_commit(struct request *request)
{
    struct history_path path;

    if (request->commit == NULL && store_history(request->server->store) != NULL &&
        history_path_split(request->names[0], &path))
        request->commit = request_print(request, "%s", path.commit);
}

bool revision_find_model(struct request *request, enum outcome *out_outcome)
{
    *out_outcome = OUTCOME_READY;
    if (request->revision.bytes == NULL) {
        note_commit(request);
        return true;
    }
    if (run(request, request->revision, REVISION_OF_MODEL, out_outcome))
        return true;
    if (*out_outcome == OUTCOME_WAITING || request->replied)
        return false;
    /* Without a history, models may be called so. */
    if (store_history(request->server->store) == NULL &&
        request->revision_search->status == ZT_NOT_FOUND &&
        authorize_sees(request, request->whole_name)) {
        request->names[0] = request->whole_name;
        request->revision = (struct zt_text){NULL, 0};
        return true;
    }
    *out_outcome = revision_reply_failure(request, &request->revision_search->error);
    return false;
}

/* A folder's path may come without its slash. path ends with NUL. */
static bool may_see(const struct request *request, const char *path)
{
    const struct zt_text text = zt_text_from(path);
    char model[MODEL_NAME_MAX + 1];

    return authorize_sees_file(request, text) || authorize_sees_folder(request, text) ||
           (model_path_name(path, model) && authorize_sees(request, zt_text_from(model))) ||
           catalog_has_shard_of(request->server->catalog, text, authorize_filter(request));
}

/* A client that may not see the path must not learn which revisions it has. Returns false if it has
 * replied. */
static bool check_path(struct request *request)
{
    const struct zt_text path = request->names[0];
    const char *text = request_copy(request, path.bytes, path.length);

    if (text == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    if (store_path_is_served(path) && may_see(request, text))
        return true;
    problem_reply(request, PROBLEM_NOT_FOUND, "there is no stored file at this path");
    return false;
}

bool revision_resolve_path(struct request *request, enum revision_kind kind,
                           enum outcome *out_outcome)
{
    struct zt_text revision;

    *out_outcome = OUTCOME_READY;
    if (!request_query(request, "revision", 0, &revision)) {
        note_commit(request);
        return true;
    }
    if (revision.length == 0 || memchr(revision.bytes, '\0', revision.length) != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "revision must be a branch, a tag or a commit");
        return false;
    }
    if (request->revision_search == NULL && !check_path(request))
        return false;
    if (request->revision_search == NULL)
        request->whole_name = request->names[0];
    request->revision = revision;
    if (!run(request, revision, kind, out_outcome)) {
        if (*out_outcome == OUTCOME_READY && !request->replied)
            *out_outcome = revision_reply_failure(request, &request->revision_search->error);
        return false;
    }
    return true;
}

enum outcome revision_redirect_to_folder(struct request *request, bool has_slash)
{
    const struct zt_text asked = request->whole_name;
    struct href href;

    href_init(&href);
    href_plain(&href, has_slash ? "../" : "");
    for (size_t i = 0; i < asked.length; i++)
        if (asked.bytes[i] == '/')
            href_plain(&href, "../");
    /* A name with a colon is not a scheme then. */
    href_plain(&href, href.length == 0 ? "./" : "");
    href_path(&href, request->names[0]);
    href_plain(&href, "/");
    return reply_redirect(request, 307, &href);
}
