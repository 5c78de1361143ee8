/* GET /api/models/{repo}/xet-write-token/{revision}. */
#include <stdio.h>
#include <time.h>

#include "api/json_reply.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/base_url.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/repo_current.h"
#include "hub/xet/handlers.h"
#include "hub/xet/token.h"
#include "upload/shared/registry.h"
#include "upload/shared/write_checks.h"

struct token_request {
    struct hub_target target;
    const char *base; /* base URL of addresses on this server */
    enum hub_found found;
    bool is_absent;
    struct zt_error error;
};

/* Makes a new address each time: see session.h. A client that asks again during an upload uses the
 * new token with its old address. */
static const char *make_address(struct request *request, const char *base)
{
    char key[UPLOAD_ID_SIZE];

    registry_make_id(key);
    return request_print(request, "%s/api/cas/%s", base, key);
}

static enum outcome reply(struct request *request, const struct xet_permit *permit,
                          const char *base)
{
    char token[XET_TOKEN_SIZE];
    const char *address = make_address(request, base);
    const char *end = request_print(request, "%lld", (long long)permit->end);
    const char *copy = xet_token_make(permit, token) ? request_print(request, "%s", token) : NULL;
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    if (address == NULL || end == NULL || copy == NULL)
        return problem_reply_no_memory(request);
    json_object_begin(json);
    json_string_member(json, "casUrl", address);
    json_uint_member(json, "exp", (uint64_t)permit->end);
    json_string_member(json, "accessToken", token);
    json_object_end(json);
    json_reply_send(request, json);
    representation_field(&request->reply, "X-Xet-Cas-Url", address);
    representation_field(&request->reply, "X-Xet-Token-Expiration", end);
    representation_field(&request->reply, "X-Xet-Access-Token", copy);
    representation_field(&request->reply, "Cache-Control", "no-store");
    return OUTCOME_READY;
}

static void look(struct request *request)
{
    struct token_request *self = request->context;
    struct hub_version *version;

    self->found = repo_current_look(request->server, self->target.repo, self->target.revision,
                                    &version, &self->error);
    self->is_absent = repo_current_is_absent(request->server, version);
    hub_version_release(version);
}

static enum outcome begin(struct request *request)
{
    struct hub_target target;
    struct token_request *self;
    const char *base;

    if (write_refuse_read_only(request) || !hub_target_read(request, &target) ||
        hub_refuse_target(request, &target))
        return OUTCOME_READY;
    if (!request->server->config->hub.xet)
        return problem_reply(
            request, PROBLEM_NOT_IMPLEMENTED,
            "this server does not accept Xet (hub.xet is false): upload with HF_HUB_DISABLE_XET=1");
    base = request_base_url(request);
    if (base == NULL)
        return problem_reply(request, PROBLEM_INVALID_REQUEST,
                             "the request has no Host that can be used in an address");
    self = request_new_context(request, sizeof(*self));
    if (self == NULL)
        return OUTCOME_READY;
    *self = (struct token_request){.target = target, .base = base};
    return request_work_long(request, look);
}

enum outcome xet_token_get(struct request *request)
{
    const struct token_request *self = request->context;
    struct xet_permit permit = {.end = time(NULL) + XET_TOKEN_S};

    if (self == NULL)
        return begin(request);
    if (self->found == HUB_FAILED || self->found == HUB_BUSY)
        return hub_reply_error(request, &self->error);
    if (self->found == HUB_NO_REVISION)
        return hub_reply_no_revision(request);
    if (self->is_absent)
        return hub_reply_no_repo(request);
    snprintf(permit.repo, sizeof(permit.repo), "%.*s", (int)self->target.repo.length,
             self->target.repo.bytes);
    registry_client(request, permit.client);
    permit.line = access_line_of(request->access, permit.client);
    permit.sees_all = authorize_filter(request).passes == NULL;
    return reply(request, &permit, self->base);
}
