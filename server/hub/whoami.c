/* Describes the client, as named by its token. */
#include "api/json_reply.h"
#include "http/exchange/problem.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_request.h"

static const char *role_of(const struct request *request)
{
    if (request->grant == NULL)
        return request->server->config->writable ? "write" : "read";
    return request->grant->scope >= SCOPE_WRITE ? "write" : "read";
}

enum outcome hub_whoami_get(struct request *request)
{
    const char *name = hub_client_name(request);
    struct json *json;

    if (request->grant == NULL && request_header(request, "Authorization") == NULL) {
        problem_reply(request, PROBLEM_UNAUTHORIZED, "Invalid username or password.");
        representation_field(&request->reply, "WWW-Authenticate", "Bearer realm=\"ztserve\"");
        return OUTCOME_READY;
    }
    json = json_reply_new(request, false);
    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_string_member(json, "type", "user");
    json_string_member(json, "id", name);
    json_string_member(json, "name", name);
    json_string_member(json, "fullname", name);
    json_key_string(json, "orgs");
    json_raw(json, "[]", 2);
    json_object_member(json, "auth");
    json_string_member(json, "type", "access_token");
    json_object_member(json, "accessToken");
    json_string_member(json, "displayName", name);
    json_string_member(json, "role", role_of(request));
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
    return json_reply_send_now(request, json, 200);
}
