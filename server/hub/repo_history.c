/* Lists the branches, the tags and the commits of a repository. Without a history there are only
 * main and its current state. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/base_url.h"
#include "http/exchange/problem.h"
#include "http/fields/uri.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "store/versions/versions_store.h"
#include "versions/recording.h"

/* Commits per page, about 3 KB each while they are written. */
#define PAGE_COMMITS     100
#define PAGE_COMMITS_MAX 1000
#define NS_PER_MS        1000000

struct past {
    struct hub_request hub; /* first */
    uint64_t below;         /* number in the log; the page begins before it */
    size_t limit;
    bool is_formatted;
    bool has_more;
    uint64_t last;        /* the number of the last commit of the page */
    bool must_list_again; /* the log does not begin with the state of the folder */
    bool is_listed_again;
    uint64_t last_change; /* in the log, before the folder was listed again */
    enum zt_status status;
    struct zt_error error;
};

/* Returns NULL for a repository that has no history here. */
static struct history *history_of(const struct request *request, const struct hub_request *hub,
                                  struct history_repo *out_repo)
{
    *out_repo = (struct history_repo){.is_root_model = false};
    snprintf(out_repo->name, sizeof(out_repo->name), "%.*s", (int)hub->target.repo.length,
             hub->target.repo.bytes);
    return hub->version->is_mirrored ? NULL : store_history(request->server->store);
}

/* Returns NULL if it has replied. */
static struct past *begin(struct request *request, bool is_of_revision)
{
    struct past *past = request_allocate(request, sizeof(*past));
    struct zt_text text;

    if (past == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    *past = (struct past){.below = UINT64_MAX};
    request->context = past;
    if (is_of_revision && !hub_target_read_whole(request, &past->hub.target))
        return NULL;
    past->limit = hub_limit(request, PAGE_COMMITS, PAGE_COMMITS_MAX);
    past->is_formatted =
        request_query(request, "expand[]", 0, &text) || request_query(request, "expand", 0, &text);
    past->is_formatted = past->is_formatted && zt_text_is(text, "formatted");
    if (request_query(request, "cursor", 0, &text) &&
        (!zt_decimal_take(&text, &past->below) || text.length > 0))
        past->below = UINT64_MAX;
    return past;
}

static enum outcome reply(struct request *request, struct past *past,
                          void (*write)(struct request *request, struct hub_request *hub))
{
    enum outcome outcome;

    if (past == NULL)
        return OUTCOME_READY;
    if (hub_find_and_write(request, write, &outcome) == NULL)
        return outcome;
    if (past->must_list_again) {
        past->must_list_again = false;
        past->is_listed_again = true;
        return hub_find_again(request, &past->hub);
    }
    return past->status == ZT_OK ? hub_reply_json(request, &past->hub)
                                 : hub_reply_error(request, &past->error);
}

/* --- branches and tags --- */

static void write_ref(struct json *json, const char *name, bool is_tag, const char *commit)
{
    char ref[HISTORY_REF_SIZE + 16];

    snprintf(ref, sizeof(ref), "refs/%s/%s", is_tag ? "tags" : "heads", name);
    json_object_begin(json);
    json_string_member(json, "name", name);
    json_string_member(json, "ref", ref);
    json_string_member(json, "targetCommit", commit);
    json_object_end(json);
}

struct refs {
    struct history_ref *list;
    size_t count;
};

static void write_some(struct json *json, const struct refs *refs, bool are_tags)
{
    for (size_t i = 0; i < refs->count; i++)
        if (refs->list[i].is_tag == are_tags &&
            (are_tags || strcmp(refs->list[i].name, HISTORY_MAIN) != 0))
            write_ref(json, refs->list[i].name, are_tags, refs->list[i].commit);
}

/* main states the folder's commit, because the folder may have changed since the last record. */
static void write_refs(struct request *request, struct hub_request *hub)
{
    struct past *past = request->context;
    struct json *json = hub->json;
    struct history_repo repo;
    struct history *history = history_of(request, hub, &repo);
    struct refs refs = {.list = NULL};
    struct zt_text text;

    if (history != NULL)
        past->status = history_refs(history, &repo, &refs.list, &refs.count, &past->error);
    if (past->status != ZT_OK)
        return;
    json_object_begin(json);
    json_key_string(json, "branches");
    json_array_begin(json);
    write_ref(json, HISTORY_MAIN, false, hub->version->commit);
    write_some(json, &refs, false);
    json_array_end(json);
    json_key_string(json, "tags");
    json_array_begin(json);
    write_some(json, &refs, true);
    json_array_end(json);
    json_key_string(json, "converts");
    json_raw(json, "[]", 2);
    if (request_query(request, "include_prs", 0, &text)) {
        json_key_string(json, "pullRequests");
        json_raw(json, "[]", 2);
    }
    json_object_end(json);
    free(refs.list);
}

enum outcome hub_refs_get(struct request *request)
{
    return reply(request, request->context != NULL ? request->context : begin(request, false),
                 write_refs);
}

/* --- commits --- */

/* Writes a text as HTML. */
static void write_html(struct json *json, const char *key, const char *text)
{
    char html[6 * sizeof(((struct history_commit *)NULL)->message)];
    size_t length = 0;

    for (; *text != '\0'; text++) {
        const char *escaped = *text == '&'   ? "&amp;"
                              : *text == '<' ? "&lt;"
                              : *text == '>' ? "&gt;"
                              : *text == '"' ? "&quot;"
                                             : NULL;

        if (escaped == NULL)
            html[length++] = *text;
        else
            length += (size_t)snprintf(html + length, sizeof(html) - length, "%s", escaped);
    }
    assert(length < sizeof(html));
    html[length] = '\0';
    json_string_member(json, key, html);
}

static void write_commit(const struct past *past, const struct history_commit *commit)
{
    struct json *json = past->hub.json;
    char date[HUB_DATE_SIZE];

    hub_date(commit->time_ms * NS_PER_MS, date);
    json_object_begin(json);
    json_string_member(json, "id", commit->id);
    json_string_member(json, "title", commit->title);
    json_string_member(json, "message", commit->message);
    json_key_string(json, "authors");
    json_array_begin(json);
    json_object_begin(json);
    json_string_member(json, "user", commit->client[0] != '\0' ? commit->client : "ztserve");
    json_object_end(json);
    json_array_end(json);
    json_string_member(json, "date", date);
    if (past->is_formatted) {
        json_key_string(json, "formatted");
        json_object_begin(json);
        write_html(json, "title", commit->title);
        write_html(json, "message", commit->message);
        json_object_end(json);
    }
    json_object_end(json);
}

/* Writes the current state of a folder that was not recorded. */
static void write_now(const struct past *past, const char *commit)
{
    struct history_commit now = {.time_ms = past->hub.version->modified_ns / NS_PER_MS,
                                 .title = HUB_COMMIT_TITLE};

    if (commit != NULL)
        snprintf(now.id, sizeof(now.id), "%s", commit);
    write_commit(past, &now);
}

/* Returns the name by which the history knows the revision. A commit may cover views, which it does
 * not know. */
static struct zt_text revision_of(const struct hub_request *hub)
{
    switch (hub_revision_of(hub->target.revision)) {
    case HUB_REVISION_NOW:
        return zt_text_from(HISTORY_MAIN);
    case HUB_REVISION_COMMIT:
        if (hub->version->stored[0] != '\0')
            return zt_text_from(hub->version->stored);
        break;
    case HUB_REVISION_UNKNOWN:
        break;
    }
    return hub->target.revision;
}

/* Returns true if the log begins with the state that the request has found. */
static bool is_recorded(const struct past *past, const struct history_commit *commits, size_t count)
{
    return count > 0 && strcmp(commits[0].id, past->hub.version->stored) == 0;
}

/* Returns true if the page begins with a state of the folder that the log does not have, because
 * other programs have changed files. The server's own changes are in the log when they end, so the
 * reason must be neither a change in progress nor one since the folder was listed. Call it after
 * the log was read. */
static bool begins_unrecorded(struct request *request, struct past *past, struct history *history,
                              const struct history_repo *repo, size_t count)
{
    uint64_t last_change;

    if (history == NULL || count == 0)
        return true;
    if (hub_revision_of(past->hub.target.revision) != HUB_REVISION_NOW ||
        recording_is_in_progress(request->server, repo))
        return false;
    past->status = history_last_change(history, repo, &last_change, &past->error);
    if (past->status != ZT_OK)
        return false;
    past->must_list_again = !past->is_listed_again;
    if (past->is_listed_again)
        return last_change == past->last_change;
    past->last_change = last_change;
    return false;
}

/* The first commit has the name that other responses give to the revision. */
static void write_page(struct request *request, struct past *past, struct history_commit *commits,
                       size_t count, bool is_unrecorded)
{
    const char *name = hub_commit(request, &past->hub);

    assert(count <= past->limit + 1);
    past->has_more = count > past->limit;
    if (past->has_more)
        count = past->limit;
    if (is_unrecorded)
        write_now(past, name);
    else if (past->below == UINT64_MAX && is_recorded(past, commits, count) && name != NULL)
        snprintf(commits[0].id, sizeof(commits[0].id), "%s", name);
    for (size_t i = 0; i < count; i++)
        write_commit(past, &commits[i]);
    if (count > 0)
        past->last = commits[count - 1].number;
}

/* Titles and messages may name files that the client may not see. */
static void hide_notes(struct history_commit *commit)
{
    commit->client[0] = commit->message[0] = '\0';
    snprintf(commit->title, sizeof(commit->title), "%s", HUB_COMMIT_TITLE);
}

static void write_commits(struct request *request, struct hub_request *hub)
{
    struct past *past = request->context;
    struct history_repo repo;
    struct history *history = history_of(request, hub, &repo);
    struct history_commit *commits = NULL;
    bool is_unrecorded = false;
    size_t count = 0;

    if (history != NULL)
        past->status = history_list(
            history, &repo, &(struct history_range){revision_of(hub), past->below, past->limit + 1},
            &commits, &count, &past->error);
    if (past->status == ZT_NOT_FOUND)
        past->status = ZT_OK;
    if (past->status == ZT_OK && past->below == UINT64_MAX && !is_recorded(past, commits, count))
        is_unrecorded = begins_unrecorded(request, past, history, &repo, count);
    if (past->status != ZT_OK || past->must_list_again) {
        free(commits);
        return;
    }
    if (count > 0 && !authorize_sees_whole_folder(request, zt_text_from(repo.name)))
        for (size_t i = 0; i < count; i++)
            hide_notes(&commits[i]);
    json_array_begin(hub->json);
    write_page(request, past, commits, count, is_unrecorded);
    json_array_end(hub->json);
    free(commits);
}

/* The link is absolute: clients take a relative one for an error, or for the end. */
static void add_next(struct request *request, const struct past *past)
{
    const char *base = request_base_url(request);
    struct zt_text path;

    if (base == NULL || target_path(request_target(request), &path) != TARGET_PATH)
        return;
    path = path_below(path, request->server->config->base_path);
    representation_field(&request->reply, "Link",
                         request_print(request,
                                       "<%s%.*s?%slimit=%zu&cursor=%" PRIu64 ">; rel=\"next\"",
                                       base, (int)path.length, path.bytes,
                                       past->is_formatted ? "expand%5B%5D=formatted&" : "",
                                       past->limit, past->last));
    request->reply.vary = BASE_URL_VARY;
}

enum outcome hub_commits_get(struct request *request)
{
    struct past *past = request->context != NULL ? request->context : begin(request, true);
    const enum outcome outcome = reply(request, past, write_commits);

    /* Until the answer is ready, a worker may be writing the page. */
    if (outcome == OUTCOME_READY && !request->replied && past != NULL && past->has_more)
        add_next(request, past);
    return outcome;
}
