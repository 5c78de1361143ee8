/* What clients ask before they upload: that there is a repository, which they then look at before
 * their first commit. */
#include <stdio.h>
#include <string.h>

#include "api/json_reply.h"
#include "base/server.h"
#include "http/exchange/base_url.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/repo_now.h"
#include "input/json_read.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/json_body.h"

struct creation {
    struct json_body body;
    char repo[HUB_REPO_SIZE];
    bool was_looked_for;
    bool exists;
    enum zt_status status;
    struct zt_error error;
};

static void free_body(void *thing)
{
    json_body_free(&((struct creation *)thing)->body);
}

void hub_create_begin(struct request *request)
{
    struct creation *creation;

    if (write_refuse_read_only(request) || json_body_refuse(request))
        return;
    creation = write_context(request, sizeof(*creation));
    if (creation != NULL)
        request_hold(request, creation, free_body);
}

void hub_create_receive(struct request *request, const void *bytes, size_t length)
{
    json_body_receive(&((struct creation *)request->context)->body, bytes, length);
}

/* --- which repository --- */

/* A repository without an owner is the client's own, as on the Hub: newer clients fail on an
 * address of one part. Not every client has a name that an owner can have. */
static void name_repo(const struct request *request, struct creation *creation,
                      const struct json_t *object, struct zt_text name)
{
    struct zt_text owner;
    int length;

    if (json_member_text(object, "organization", &owner) != JSON_FOUND || owner.length == 0) {
        owner = zt_text_from(hub_client_name(request));
        if (!hub_owner_is_valid(owner) || memchr(name.bytes, '/', name.length) != NULL)
            owner.length = 0;
    }
    length = snprintf(creation->repo, sizeof(creation->repo), "%.*s%s%.*s", (int)owner.length,
                      owner.bytes, owner.length > 0 ? "/" : "", (int)name.length, name.bytes);
    if (length < 0 || (size_t)length >= sizeof(creation->repo))
        creation->repo[0] = '\0';
}

/* What some clients can send with it is no commit, and must not be dropped in silence. False:
 * replied. */
static bool check_files(struct request *request, const struct json_t *object)
{
    const struct json_t *files = json_member_list(object, "files");

    if (files == NULL || json_list_length(files) == 0)
        return true;
    problem_reply(request, PROBLEM_NOT_IMPLEMENTED,
                  "a repository is created without files: send them in a commit afterwards");
    return false;
}

/* False: replied. */
static bool read_name(struct request *request, struct creation *creation,
                      const struct json_t *object)
{
    struct zt_text name;
    struct zt_text type;

    if (json_member_text(object, "type", &type) == JSON_FOUND && !zt_text_is(type, "model")) {
        problem_reply(request, PROBLEM_NOT_IMPLEMENTED, "only models are kept here");
        return false;
    }
    if (json_member_text(object, "name", &name) != JSON_FOUND) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "a repository has a name");
        return false;
    }
    name_repo(request, creation, object, name);
    return check_files(request, object) &&
           !hub_refuse_name(request, zt_text_from(creation->repo)) &&
           !hub_refuse_repo(request, zt_text_from(creation->repo));
}

static bool read_body(struct request *request, struct creation *creation)
{
    struct json_t *object;
    bool is_read;

    if (json_body_refuse_received(request, &creation->body))
        return false;
    object = json_object_read(json_body_text(&creation->body), NULL);
    if (object == NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "the body is no JSON object");
        return false;
    }
    is_read = read_name(request, creation, object);
    json_object_free(object);
    return is_read;
}

static void look_and_create(struct request *request)
{
    struct creation *creation = request->context;
    struct server *server = request->server;
    struct hub_version *version;

    if (!repo_now_find(server, zt_text_from(creation->repo), &version, &creation->error)) {
        creation->status = creation->error.status;
        return;
    }
    creation->exists = version != NULL;
    hub_version_release(version);
    if (!creation->exists)
        creation->status = hub_repos_create(server->hub, creation->repo, &creation->error);
}

/* What has the name cannot become a repository: not 409, which clients take for a repository that
 * exists. */
static enum outcome refuse_failure(struct request *request, const struct creation *creation)
{
    return problem_reply(request,
                         creation->status == ZT_ARGUMENT ? PROBLEM_INVALID_NAME
                                                         : problem_of_write(&creation->error),
                         "%s", creation->error.message);
}

/* Clients that do not mind an existing repository read its address from the refusal. */
static enum outcome reply_exists(struct request *request, const char *url, const char *repo)
{
    const struct problem_member members[] = {{"url", url}, {"name", repo}, {"id", repo}};

    return problem_reply_members(
        request, PROBLEM_CONFLICT, "this repository exists already",
        &(struct problem_members){members, sizeof(members) / sizeof(members[0])});
}

static enum outcome reply(struct request *request, const struct creation *creation)
{
    const char *base = request_base_url(request);
    const char *url = request_print(request, "%s/%s", base != NULL ? base : "", creation->repo);
    struct json *json;

    if (url == NULL)
        return problem_reply_no_memory(request);
    if (creation->exists)
        return reply_exists(request, url, creation->repo);
    json = json_reply_new(request, false);
    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    hub_json_string(json, "url", url);
    hub_json_string(json, "name", creation->repo);
    hub_json_string(json, "id", creation->repo);
    json_object_end(json);
    return json_reply_send(request, json);
}

enum outcome hub_create_handle(struct request *request)
{
    struct creation *creation = request->context;

    if (!creation->was_looked_for) {
        creation->was_looked_for = true;
        return read_body(request, creation) ? request_work_long(request, look_and_create)
                                            : OUTCOME_READY;
    }
    if (creation->status != ZT_OK)
        return refuse_failure(request, creation);
    return reply(request, creation);
}

/* The metadata at the head of a README.md means nothing here, so there is nothing wrong with it. */
enum outcome hub_yaml_handle(struct request *request)
{
    static const char text[] = "{\"errors\":[],\"warnings\":[]}\n";

    reply_json(request, 200, text, sizeof(text) - 1);
    return OUTCOME_READY;
}
