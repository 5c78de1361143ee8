/* What clients ask before they upload. A repository is a folder with files in it: it begins with
 * its first commit, and creating it only says whether it may be, and by which address. */
#include <stdio.h>
#include <string.h>

#include "api/json_reply.h"
#include "base/server.h"
#include "http/exchange/base_url.h"
#include "hub/hub_json.h"
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
    bool is_known;
    bool exists;
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

/* False: replied. */
static bool read_name(struct request *request, struct creation *creation,
                      const struct json_t *object)
{
    struct zt_text name;
    struct zt_text owner;
    struct zt_text type;
    int length;

    if (json_member_text(object, "type", &type) == JSON_FOUND && !zt_text_is(type, "model")) {
        problem_reply(request, PROBLEM_NOT_IMPLEMENTED, "only models are kept here");
        return false;
    }
    if (json_member_text(object, "name", &name) != JSON_FOUND) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "a repository has a name");
        return false;
    }
    if (json_member_text(object, "organization", &owner) == JSON_FOUND && owner.length > 0)
        length = snprintf(creation->repo, sizeof(creation->repo), "%s/%s", owner.bytes, name.bytes);
    else
        length = snprintf(creation->repo, sizeof(creation->repo), "%s", name.bytes);
    if (length < 0 || (size_t)length >= sizeof(creation->repo))
        creation->repo[0] = '\0';
    return !hub_refuse_repo(request, zt_text_from(creation->repo));
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

static void look(struct request *request)
{
    struct creation *creation = request->context;
    struct hub_version *version;

    creation->is_known =
        repo_now_find(request->server, zt_text_from(creation->repo), &version, &creation->error);
    creation->exists = version != NULL;
    hub_version_release(version);
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
        return read_body(request, creation) ? request_work_long(request, look) : OUTCOME_READY;
    }
    if (!creation->is_known)
        return problem_reply(request, problem_of_status(creation->error.status), "%s",
                             creation->error.message);
    return reply(request, creation);
}

/* The metadata at the head of a README.md means nothing here, so there is nothing wrong with it. */
enum outcome hub_yaml_handle(struct request *request)
{
    static const char text[] = "{\"errors\":[],\"warnings\":[]}\n";

    reply_json(request, 200, text, sizeof(text) - 1);
    return OUTCOME_READY;
}
