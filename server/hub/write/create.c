/* Answers the requests that clients send before an upload: creating a repository, and checking the
 * README.md of the first commit. */
#include <stdio.h>
#include <string.h>

#include "api/json_reply.h"
#include "base/server.h"
#include "http/exchange/base_url.h"
#include "http/exchange/json_body.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/repo_current.h"
#include "input/json_read.h"
#include "upload/shared/write_checks.h"

/* Checked in every case, even if commits may be smaller. */
#define YAML_BYTES (UINT64_C(16) << 20)

struct creation {
    char repo[HUB_REPO_SIZE];
    bool was_searched;
    bool exists;
    enum zt_status status;
    struct zt_error error;
};

void hub_create_begin(struct request *request)
{
    if (!write_refuse_read_only(request) && !json_body_refuse(request))
        (void)request_new_context(request, sizeof(struct creation));
}

/* --- which repository --- */

/* A repository without an owner gets the client's name as owner, as on the Hub: newer clients fail
 * on an address with one part. Some clients have names that owners cannot have. */
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

/* Some clients can send files with the request, which is not a commit. They must not be dropped
 * silently. Returns false if it has replied. */
static bool check_files(struct request *request, const struct json_t *object)
{
    const struct json_t *files = json_member_list(object, "files");

    if (files == NULL || json_list_length(files) == 0)
        return true;
    problem_reply(request, PROBLEM_NOT_IMPLEMENTED,
                  "a repository is created empty: send files in a commit afterwards");
    return false;
}

/* Returns false if it has replied. */
static bool read_name(struct request *request, struct creation *creation,
                      const struct json_t *object)
{
    struct zt_text name;
    struct zt_text type;

    if (json_member_text(object, "type", &type) == JSON_FOUND && !zt_text_is(type, "model")) {
        problem_reply(request, PROBLEM_NOT_IMPLEMENTED, "this server has only models");
        return false;
    }
    if (json_member_text(object, "name", &name) != JSON_FOUND) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "a repository needs a name");
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

    if (json_body_refuse_received(request))
        return false;
    object = json_object_read(json_body_text(request), NULL);
    if (object == NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "the body is not a JSON object");
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

    if (!repo_current_find(server, zt_text_from(creation->repo), &version, &creation->error)) {
        creation->status = creation->error.status;
        return;
    }
    creation->exists = version != NULL;
    hub_version_release(version);
    if (!creation->exists)
        creation->status = hub_repos_create(server->hub, creation->repo, &creation->error);
}

/* Something else has the name, so it cannot become a repository. The status is not 409, which
 * clients take for an existing repository. */
static enum outcome refuse_failure(struct request *request, const struct creation *creation)
{
    return problem_reply(request,
                         creation->status == ZT_ARGUMENT ? PROBLEM_INVALID_NAME
                                                         : problem_of_write(&creation->error),
                         "%s", creation->error.message);
}

/* Clients that accept an existing repository read its address from the refusal. */
static enum outcome reply_exists(struct request *request, const char *url, const char *repo)
{
    const char *const members[] = {"url", url, "name", repo, "id", repo, NULL};

    return problem_reply_members(request, PROBLEM_CONFLICT, "this repository already exists",
                                 members);
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
    json_string_member(json, "url", url);
    json_string_member(json, "name", creation->repo);
    json_string_member(json, "id", creation->repo);
    json_object_end(json);
    return json_reply_send(request, json);
}

enum outcome hub_create_handle(struct request *request)
{
    struct creation *creation = request->context;

    if (!creation->was_searched) {
        creation->was_searched = true;
        return read_body(request, creation) ? request_work_long(request, look_and_create)
                                            : OUTCOME_READY;
    }
    if (creation->status != ZT_OK)
        return refuse_failure(request, creation);
    return reply(request, creation);
}

/* Twice the limit for a file of a commit, because JSON escapes some characters. */
void hub_yaml_begin(struct request *request)
{
    const uint64_t most = 2 * (uint64_t)config_number(&request->server->config->hub.regular_bytes);
    const uint64_t length = request_body_length(request);

    if (length > most && length > YAML_BYTES && length != UINT64_MAX)
        problem_reply(request, PROBLEM_TOO_LARGE, "an uploaded README.md must be shorter");
}

/* The metadata at the start of a README.md is not used here, so it is always valid. */
enum outcome hub_yaml_handle(struct request *request)
{
    static const char text[] = "{\"errors\":[],\"warnings\":[]}\n";

    reply_json(request, 200, text, sizeof(text) - 1);
    return OUTCOME_READY;
}
