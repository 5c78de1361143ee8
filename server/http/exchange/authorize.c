/* Derives a request's grant from its credentials, and decides from the grant what is allowed. */
#include "http/exchange/authorize.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "http/exchange/client.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/exchange/signed_request.h"
#include "store/store.h"
#include "store/versions/versions_store.h"

#define CHALLENGE "Bearer realm=\"ztserve\""
/* Every route below this concerns the model in its first name. */
#define MODEL_PATTERN "/v1/models/{model}"

/* --- who --- */

/* Returns true if no credentials are needed. OPTIONS, which browsers send without credentials,
 * reveals nothing about models. */
static bool is_for_everybody(const struct request *request)
{
    if (request->method == METHOD_OPTIONS)
        return true;
    if (request->route == NULL)
        return false;
    switch (request->route->audience) {
    case AUDIENCE_CLIENTS:
        break;
    case AUDIENCE_EVERYBODY:
        return true;
    case AUDIENCE_METRICS:
        return request->access->metrics_public;
    }
    return false;
}

static const char *detail_of(const struct request *request, enum access_failure failure)
{
    if (request_is_s3(request) &&
        (failure == ACCESS_NO_CREDENTIALS || failure == ACCESS_BAD_CREDENTIALS))
        return "sign the request with an access key of this server (AWS4-HMAC-SHA256), or send a "
               "token (Authorization: Bearer TOKEN)";
    switch (failure) {
    case ACCESS_NO_CREDENTIALS:
        return request->access->has_certificates
                   ? "send a token (Authorization: Bearer TOKEN), or present a client certificate"
                   : "send a token (Authorization: Bearer TOKEN)";
    case ACCESS_BAD_CREDENTIALS:
        return "the request must have one Authorization field, with Bearer and one token";
    case ACCESS_FOREIGN_TOKEN:
        return "the token has another issuer, or another audience";
    case ACCESS_EXPIRED_TOKEN:
        return "the token has expired, or is not valid yet";
    case ACCESS_UNKNOWN_SUBJECT:
        return "no client has the token's subject";
    case ACCESS_UNKNOWN_CERTIFICATE:
        return "no client has a name in the certificate";
    case ACCESS_UNNAMED_CERTIFICATE:
        return "the certificate has no name to compare: a common name, DNS name, URI or email "
               "address "
               "of UTF-8 without control characters, of 1 to 1023 bytes";
    case ACCESS_UNKNOWN_TOKEN:
    case ACCESS_UNKNOWN_KEY:
    case ACCESS_BAD_SIGNATURE:
    case ACCESS_EXPIRED_SIGNATURE:
    case ACCESS_NO_MEMORY:
    case ACCESS_SCOPE:
    case ACCESS_MODEL:
    case ACCESS_FAILURES:
        break;
    }
    return "the token is not valid";
}

/* Without a bearer token the challenge contains no error code (section 3.1). */
static void refuse_client(struct request *request, enum access_failure failure,
                          enum authorization authorization)
{
    const bool has_token =
        authorization == AUTHORIZATION_BEARER || authorization == AUTHORIZATION_MALFORMED;

    access_count_failure(failure);
    if (failure == ACCESS_NO_MEMORY) {
        problem_reply_no_memory(request);
        return;
    }
    problem_reply(request, PROBLEM_UNAUTHORIZED, "%s", detail_of(request, failure));
    if (!request_is_s3(request))
        representation_field(&request->reply, "WWW-Authenticate",
                             has_token ? CHALLENGE ", error=\"invalid_token\"" : CHALLENGE);
}

static const struct grant *identify(struct request *request, struct credentials *out_credentials,
                                    enum access_failure *out_failure)
{
    const struct request_state *state = request_state(request);
    struct credentials *credentials = out_credentials;

    *credentials = (struct credentials){.names = NULL};
    credentials->authorization =
        authorization_read(state->headers, state->header_count, &credentials->token);
    if (request->access->has_certificates && credentials->authorization == AUTHORIZATION_ABSENT)
        credentials->names = request_client_names(request);
    return access_identify(request->access, credentials, state->token_memory, out_failure);
}

bool authorize_is_needed(const struct request *request)
{
    return request->access->needs_client || request->access->s3_keys != NULL;
}

bool authorize_knows_client(struct request *request)
{
    struct credentials credentials;
    enum access_failure failure;

    return !request->access->needs_client || identify(request, &credentials, &failure) != NULL;
}

void authorize_client(struct request *request)
{
    struct credentials credentials;
    enum access_failure failure;

    assert(authorize_is_needed(request));
    if (is_for_everybody(request) ||
        (request_is_s3(request) && signed_request_authorize(request)) ||
        !request->access->needs_client)
        return;
    request->grant = identify(request, &credentials, &failure);
    if (request->grant == NULL)
        refuse_client(request, failure, credentials.authorization);
    else
        request_set_client(request, request->grant->name != NULL ? request->grant->name
                                                                 : credentials.names[0]);
}

/* --- what --- */

static enum scope scope_by_method(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD ? SCOPE_READ : SCOPE_WRITE;
}

static enum scope scope_needed(const struct request *request)
{
    switch (request_state_const(request)->operation->needs) {
    case NEEDS_BY_METHOD:
        break;
    case NEEDS_READ:
        return SCOPE_READ;
    case NEEDS_WRITE:
        return SCOPE_WRITE;
    case NEEDS_ADMIN:
        return SCOPE_ADMIN;
    }
    return scope_by_method(request->method);
}

static void refuse_scope(struct request *request, enum scope needed)
{
    static const struct {
        const char *name;
        const char *challenge;
    } scopes[] = {
        [SCOPE_READ] = {"read", CHALLENGE ", error=\"insufficient_scope\", scope=\"read\""},
        [SCOPE_WRITE] = {"write", CHALLENGE ", error=\"insufficient_scope\", scope=\"write\""},
        [SCOPE_ADMIN] = {"admin", CHALLENGE ", error=\"insufficient_scope\", scope=\"admin\""},
    };

    access_count_failure(ACCESS_SCOPE);
    problem_reply(request, PROBLEM_FORBIDDEN, "this request needs the scope %s",
                  scopes[needed].name);
    if (!request_is_s3(request))
        representation_field(&request->reply, "WWW-Authenticate", scopes[needed].challenge);
}

static bool names_a_model(const struct route *route)
{
    const size_t length = sizeof(MODEL_PATTERN) - 1;

    return strncmp(route->pattern, MODEL_PATTERN, length) == 0 &&
           (route->pattern[length] == '\0' || route->pattern[length] == '/');
}

/* --- names in commits ---
 *
 * The store has earlier versions of files at REPOSITORY@COMMIT/REST. Globs are compared with the
 * name that the model has in the folder. */

/* Room for a folder with a slash. */
#define NAME_SIZE (MODEL_NAME_MAX + 2)

typedef bool (*coverage)(const struct grant *grant, struct zt_text name);

/* A commit of a repository without a slash belongs to a folder, to the files of a model in the
 * root, or to both. */
struct place_in_commit {
    struct history_path path;
    bool is_in_folder;
    bool is_in_root;
    bool is_unknown; /* its repositories have not been read yet: each of them may have it */
};

/* An event loop does not wait for the log of a bucket: *out_unknown. */
static bool has_commit(struct history *history, const struct history_path *path, bool is_root_model,
                       bool *out_unknown)
{
    struct history_repo repo = {.is_root_model = is_root_model};
    struct history_found found;
    struct zt_error ignored;
    enum zt_status status;

    if (path->repo.length >= sizeof(repo.name))
        return false;
    memcpy(repo.name, path->repo.bytes, path->repo.length);
    status = history_find(history, &repo, zt_text_from(path->commit), &found, &ignored);
    *out_unknown = *out_unknown || status == ZT_UNAVAILABLE;
    return status == ZT_OK || status == ZT_UNAVAILABLE;
}

/* Returns false for any other name, also of a file of the folder that looks like a commit's. */
static bool is_in_commit(const struct request *request, struct zt_text name,
                         struct place_in_commit *out_place)
{
    struct store *store = request->server != NULL ? request->server->store : NULL;
    struct history *history = store != NULL ? store_history(store) : NULL;
    struct history_path *path = &out_place->path;

    if (history == NULL || !history_path_split(name, path))
        return false;
    out_place->is_unknown = false;
    out_place->is_in_folder = has_commit(history, path, false, &out_place->is_unknown);
    out_place->is_in_root = memchr(path->repo.bytes, '/', path->repo.length) == NULL &&
                            has_commit(history, path, true, &out_place->is_unknown);
    return out_place->is_in_folder || out_place->is_in_root;
}

/* Asks about a name in a repository's folder, with what follows it. */
static bool covers_in_folder(const struct request *request, coverage covers,
                             const struct history_path *path, const char *behind)
{
    char name[NAME_SIZE];
    const int length = snprintf(name, sizeof(name), "%.*s%s%.*s%s", (int)path->repo.length,
                                path->repo.bytes, path->rest.length > 0 ? "/" : "",
                                (int)path->rest.length, path->rest.bytes, behind);

    return length > 0 && (size_t)length < sizeof(name) &&
           covers(request->grant, (struct zt_text){name, (size_t)length});
}

/* Of two repositories that may have the commit, the wrong one must not decide. */
static bool decide(const struct place_in_commit *place, bool covers_folder, bool covers_root)
{
    if (place->is_unknown)
        return (!place->is_in_folder || covers_folder) && (!place->is_in_root || covers_root);
    return (place->is_in_folder && covers_folder) || (place->is_in_root && covers_root);
}

static bool sees_in_commit(const struct request *request, const struct place_in_commit *place)
{
    return decide(place, covers_in_folder(request, grant_covers, &place->path, ""),
                  grant_covers(request->grant, place->path.rest));
}

/* The files of a model in the root are in no folder. */
static bool covers_folder_in_commit(const struct request *request, coverage covers,
                                    const struct place_in_commit *place)
{
    return decide(place, covers_in_folder(request, covers, &place->path, "/"),
                  place->path.rest.length == 0 && covers(request->grant, place->path.repo));
}

bool authorize_sees(const struct request *request, struct zt_text model)
{
    struct place_in_commit place;

    if (request->grant == NULL)
        return true;
    return is_in_commit(request, model, &place) ? sees_in_commit(request, &place)
                                                : grant_covers(request->grant, model);
}

struct zt_text authorize_name_of_file(struct zt_text path)
{
    size_t at = path.length;

    while (at > 0 && path.bytes[at - 1] != '.' && path.bytes[at - 1] != '/')
        at--;
    if (at > 1 && path.bytes[at - 1] == '.' && path.bytes[at - 2] != '/')
        path.length = at - 1;
    return path;
}

bool authorize_sees_file(const struct request *request, struct zt_text path)
{
    return authorize_sees(request, authorize_name_of_file(path));
}

/* Asks about the names that begin with a folder and its slash. */
static bool covers_folder(const struct request *request, coverage covers, struct zt_text folder)
{
    char beginning[NAME_SIZE];
    struct place_in_commit place;

    if (is_in_commit(request, folder, &place))
        return covers_folder_in_commit(request, covers, &place);
    if (folder.length >= sizeof(beginning))
        return false;
    memcpy(beginning, folder.bytes, folder.length);
    beginning[folder.length] = '/';
    return covers(request->grant, (struct zt_text){beginning, folder.length + 1});
}

bool authorize_sees_folder(const struct request *request, struct zt_text folder)
{
    return request->grant == NULL || folder.length == 0 ||
           covers_folder(request, grant_covers_some, folder);
}

bool authorize_sees_whole_folder(const struct request *request, struct zt_text folder)
{
    return request->grant == NULL || covers_folder(request, grant_covers_all, folder);
}

static bool covers(const void *context, struct zt_text name)
{
    return authorize_sees(context, name);
}

struct name_filter authorize_filter(const struct request *request)
{
    if (request->grant == NULL || request->grant->models == NULL)
        return (struct name_filter){NULL, NULL};
    return (struct name_filter){covers, request};
}

bool authorize_refuse_model(struct request *request, struct zt_text model)
{
    if (authorize_sees(request, model))
        return false;
    access_count_failure(ACCESS_MODEL);
    problem_reply(request, PROBLEM_FORBIDDEN, "this client may not use a model of this name");
    return true;
}

bool authorize_refuse_folder(struct request *request, struct zt_text folder)
{
    if (authorize_sees_whole_folder(request, folder))
        return false;
    access_count_failure(ACCESS_MODEL);
    problem_reply(request, PROBLEM_FORBIDDEN, "this client may not use all files of this folder");
    return true;
}

bool authorize_writes(const struct request *request)
{
    return request->grant == NULL || request->grant->scope >= SCOPE_WRITE;
}

void authorize_operation(struct request *request)
{
    enum scope needed;

    if (request->grant == NULL)
        return;
    needed = scope_needed(request);
    if (request->grant->scope < needed)
        refuse_scope(request, needed);
    else if (names_a_model(request->route))
        (void)authorize_refuse_model(request, request->names[0]);
}
