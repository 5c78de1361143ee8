/* Finds a repository's version from a request's path. Paths are split before they are decoded,
 * because some clients escape the slashes in a file's path. */
#include "hub/hub_request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/json_reply.h"
#include "base/decimal.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/router.h"
#include "http/fields/uri.h"
#include "hub/hub_problem.h"
#include "views/model_view.h"
#include "zt/utf8.h"

/* Without tokens clients have no name, but a login must not fail because of that. */
#define ANYBODY "anonymous"

/* Appears in routes that have more than the name of a repository. */
#define REVISION "{revision"

/* Decodes a name. Some clients escape other characters of a name, but not '%'. Returns false if it
 * has replied. */
static bool decode(struct request *request, struct zt_text raw, struct zt_text *out_text)
{
    char *text = request_allocate(request, raw.length + 1);

    if (text == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    out_text->length = percent_decode_where_escaped(raw, text);
    text[out_text->length] = '\0';
    out_text->bytes = text;
    return true;
}

bool hub_target_read(struct request *request, struct hub_target *out_target)
{
    struct zt_text revision;
    struct zt_text path;

    *out_target = (struct hub_target){.revision = {"main", 4}, .path = {"", 0}};
    if (!decode(request, request->names[0], &out_target->repo))
        return false;
    if (strstr(request->route->pattern, REVISION) == NULL)
        return true;
    hub_revision_split(request->names[1], &revision, &path);
    return decode(request, revision, &out_target->revision) &&
           decode(request, path, &out_target->path);
}

bool hub_target_read_whole(struct request *request, struct hub_target *out_target)
{
    *out_target = (struct hub_target){.path = {"", 0}};
    return decode(request, request->names[0], &out_target->repo) &&
           decode(request, request->names[1], &out_target->revision);
}

/* --- access --- */

bool hub_sees_file(const struct request *request, struct zt_text repo, const struct hub_file *file)
{
    char name[HUB_REPO_SIZE + MODEL_PATH_SIZE];

    if (request->grant == NULL)
        return true;
    if (file->view != NULL)
        return authorize_sees_file(request, zt_text_from(file->view->path));
    snprintf(name, sizeof(name), "%.*s/%s", (int)repo.length, repo.bytes, file->path);
    return authorize_sees_file(request, zt_text_from(name));
}

bool hub_sees_repo(const struct request *request, struct zt_text repo,
                   const struct hub_version *version)
{
    size_t at = 0;

    if (request->grant == NULL)
        return true;
    if (version->count == 0)
        return authorize_sees_folder(request, repo);
    while (at < version->count && !hub_sees_file(request, repo, &version->files[at]))
        at++;
    return at < version->count;
}

/* --- finding --- */

/* Returns true if the version should be hashed first, to get its final commit, in another step on a
 * worker. Otherwise a client would get a provisional commit now and another one the next time,
 * although no file has changed. */
static bool must_hash(const struct request *request, const struct hub_request *hub)
{
    const bool is_pinned = hub_revision_of(hub->target.revision) == HUB_REVISION_COMMIT;

    return !hub->lookup.may_take_long && hub->version != NULL && hub->version->can_be_final &&
           hub->lookup.found == (is_pinned ? HUB_NO_REVISION : HUB_FOUND) &&
           hub_sees_repo(request, hub->target.repo, hub->version);
}

static void find(struct request *request)
{
    struct hub_request *hub = request->context;

    hub_version_release(hub->version);
    hub->version = NULL;
    hub_repos_find(request->server->hub, &hub->lookup);
    hub->version = hub->lookup.version;
    assert(hub->lookup.found != HUB_FOUND || hub->version != NULL);
    if (must_hash(request, hub))
        return;
    if (hub->write != NULL && hub->lookup.found == HUB_FOUND &&
        hub_sees_repo(request, hub->target.repo, hub->version))
        hub->write(request, hub);
}

/* Returns true if the client may see the result. It must not learn that a repository or revision
 * exists if it may not see it, even if the requested revision was not found. */
static bool sees_what_was_found(const struct request *request, const struct hub_request *hub)
{
    return hub->version != NULL ? hub_sees_repo(request, hub->target.repo, hub->version)
                                : authorize_sees_folder(request, hub->target.repo);
}

static enum outcome reply_not_found(struct request *request, const struct hub_request *hub)
{
    if (!sees_what_was_found(request, hub))
        return hub_reply_no_repo(request);
    switch (hub->lookup.found) {
    case HUB_FOUND:
    case HUB_NO_REPO:
    case HUB_BUSY:
        break;
    case HUB_NO_REVISION:
        return hub_reply_no_revision(request);
    case HUB_FAILED:
        return hub_reply_error(request, &hub->lookup.error);
    }
    return hub_reply_no_repo(request);
}

/* Returns NULL if it has replied. */
static struct hub_request *hub_of(struct request *request)
{
    struct hub_request *hub = request->context;

    if (hub == NULL) {
        hub = request_new_context(request, sizeof(*hub));
        if (hub == NULL)
            return NULL;
    }
    return hub->target.repo.bytes != NULL || hub_target_read(request, &hub->target) ? hub : NULL;
}

static void release_found(void *thing)
{
    hub_version_release(((struct hub_request *)thing)->version);
}

static enum outcome look(struct request *request, const struct hub_request *hub)
{
    return hub->lookup.may_take_long ? request_work_long(request, find)
                                     : request_work(request, find);
}

/* Waits without a thread, because very many requests may wait for one repository. */
static enum outcome wait_for_list(struct request *request, const struct hub_request *hub)
{
    return hub_repos_wait(request->server->hub, &hub->lookup, request_waiter(request))
               ? OUTCOME_WAITING
               : look(request, hub);
}

/* Returns true if the client may not see the repository, so that another machine must not be asked
 * for it: not even whether it exists. */
static bool may_not_ask(const struct request *request, const struct hub_request *hub)
{
    return store_may_wait(request->server->store) &&
           !authorize_sees_folder(request, hub->target.repo);
}

struct hub_request *hub_find(struct request *request, enum outcome *out_outcome)
{
    struct hub_request *hub = hub_of(request);

    *out_outcome = OUTCOME_READY;
    if (hub == NULL)
        return NULL;
    if (!hub->was_searched) {
        hub->was_searched = true;
        if (may_not_ask(request, hub)) {
            *out_outcome = hub_reply_no_repo(request);
            return NULL;
        }
        hub->lookup.name = hub->target.repo;
        hub->lookup.revision = hub->target.revision;
        /* Held before anything is found: if the client leaves, there are no further steps. */
        request_hold(request, hub, release_found);
        *out_outcome = look(request, hub);
        return NULL;
    }
    if (must_hash(request, hub)) {
        hub->lookup.may_take_long = true;
        *out_outcome = look(request, hub);
        return NULL;
    }
    if (hub->lookup.found == HUB_BUSY) {
        *out_outcome = wait_for_list(request, hub);
        return NULL;
    }
    if (hub->lookup.found == HUB_FOUND && hub_sees_repo(request, hub->target.repo, hub->version))
        return hub;
    *out_outcome = reply_not_found(request, hub);
    return NULL;
}

enum outcome hub_find_again(struct request *request, struct hub_request *hub)
{
    hub_repos_changed(request->server->hub);
    hub->lookup = (struct hub_lookup){
        .name = hub->target.repo, .revision = hub->target.revision, .is_again = true};
    return look(request, hub);
}

struct hub_request *hub_find_and_write(struct request *request,
                                       void (*write)(struct request *request,
                                                     struct hub_request *hub),
                                       enum outcome *out_outcome)
{
    struct hub_request *hub = hub_of(request);

    *out_outcome = OUTCOME_READY;
    if (hub == NULL)
        return NULL;
    if (!hub->was_searched) {
        hub->write = write;
        hub->json = json_reply_new(request, false);
        if (hub->json == NULL)
            return NULL;
    }
    return hub_find(request, out_outcome);
}

enum outcome hub_reply_json(struct request *request, struct hub_request *hub)
{
    json_reply_send(request, hub->json);
    if (!request->replied)
        request->reply.cache_control = "no-cache";
    return OUTCOME_READY;
}

const char *hub_commit(struct request *request, const struct hub_request *hub)
{
    const struct zt_text revision = hub->target.revision;

    if (hub_revision_of(revision) == HUB_REVISION_COMMIT)
        return request_print(request, "%.*s", (int)revision.length, revision.bytes);
    return request_print(request, "%s", hub->version->commit);
}

const char *hub_client_name(const struct request *request)
{
    return request->client != NULL ? request->client : ANYBODY;
}

bool hub_text_is_true(struct zt_text text)
{
    return zt_text_is(text, "1") || (text.length == 4 && strncasecmp(text.bytes, "true", 4) == 0);
}

bool hub_text_is_false(struct zt_text text)
{
    return zt_text_is(text, "0") || (text.length == 5 && strncasecmp(text.bytes, "false", 5) == 0);
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

void hub_text_copy(struct zt_text text, char *out_text, size_t size)
{
    size_t length = text.length < size ? text.length : size - 1;

    assert(size > 0);
    while (length > 0 && length < text.length && is_continuation(text.bytes[length]))
        length--;
    assert(length < size);
    memcpy(out_text, text.bytes, length);
    out_text[length] = '\0';
}

bool hub_switch(struct request *request, const char *name)
{
    struct zt_text text;

    return request_query(request, name, 0, &text) && hub_text_is_true(text);
}

size_t hub_limit(struct request *request, size_t usual, size_t most)
{
    struct zt_text text;
    uint64_t limit;

    if (!request_query(request, "limit", 0, &text) || !zt_decimal_take(&text, &limit))
        return usual;
    if (limit > most)
        return most;
    return limit == 0 || text.length > 0 ? usual : (size_t)limit;
}
