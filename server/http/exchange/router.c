/* Routing matches the raw path and then decodes the names in it; dot segments are ordinary names. A
 * model's name may contain unescaped slashes, since proxies and clients decode "%2F": the name
 * extends up to the first later segment that names a resource of the model.
 *
 * The checks are, in this order: unknown method (501), invalid path (400), unknown path (404),
 * invalid name (400), OPTIONS (204), a method that the path does not support (405). Preflight
 * requests get 204 for every path. */
#include "http/exchange/router.h"

#include <assert.h>
#include <string.h>

#include "http/exchange/cors.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/fields/revision_name.h"
#include "http/fields/uri.h"
#include "store/store.h"
#include "store/versions/history.h"
#include "zt/utf8.h"

/* Enough for "GET, HEAD, PUT, POST, DELETE, PATCH, QUERY, OPTIONS". */
#define ALLOW_SIZE 64

/* The name that may contain unescaped slashes. */
#define MODEL_PLACEHOLDER "{model}"
/* Names of a model's contents; they may be empty. */
#define OBJECT_PLACEHOLDER    "{object}"
#define COMPONENT_PLACEHOLDER "{component}"
/* The name that has two segments, or one. */
#define REPO_PLACEHOLDER "{repo}"

/* Reads one "{name}" of a pattern, or "{name...}" (*out_rest is then true). Returns the text after
 * it. */
static const char *skip_placeholder(const char *pattern, bool *out_rest)
{
    const char *close = strchr(pattern, '}');

    assert(close != NULL);
    *out_rest = close - pattern > 3 && memcmp(close - 3, "...", 3) == 0;
    return close + 1;
}

/* Returns the end of a name, which is one segment, or several for a model. */
static const char *name_end(const char *at, const char *end, bool is_model)
{
    const char *slash = at < end ? memchr(at, '/', (size_t)(end - at)) : NULL;

    while (is_model && slash != NULL && slash + 1 < end) {
        const char *next = memchr(slash + 1, '/', (size_t)(end - slash - 1));
        const char *stop = next != NULL ? next : end;

        if (stop == slash + 1 ||
            model_segment_is_resource((struct zt_text){slash + 1, (size_t)(stop - slash - 1)}))
            return slash;
        slash = next;
    }
    return slash != NULL ? slash : end;
}

/* The range of the model's name in a path; it is the same for all routes. */
struct model_span {
    const char *start; /* NULL: not determined yet */
    const char *end;
};

static const char *model_end(struct model_span *span, const char *at, const char *end)
{
    if (span->start != at)
        *span = (struct model_span){at, name_end(at, end, true)};
    return span->end;
}

/* The part of a path that is not matched yet, and the number of names found so far. */
struct rest {
    const char *at;
    const char *end;
    unsigned count;
};

/* Returns the end of the rest of a path, excluding what the pattern has after it: nothing, or a
 * slash. */
static const char *rest_end(const char *at, const char *end, const char *pattern)
{
    const size_t behind = strlen(pattern);

    return (size_t)(end - at) > behind ? end - behind : at;
}

static bool matches_rest(const char *pattern, struct rest rest, struct model_span *span,
                         struct zt_text out_names[REQUEST_NAMES]);

/* Takes two segments or, if the pattern does not match after two, one. The suffix that the pattern
 * has after the name (".git") is not part of the last segment. */
static bool matches_repo(const char *pattern, struct rest rest, struct model_span *span,
                         struct zt_text out_names[REQUEST_NAMES])
{
    const size_t behind = strcspn(pattern, "/");
    const char *first = name_end(rest.at, rest.end, false);
    const char *stop = first < rest.end ? name_end(first + 1, rest.end, false) : first;
    const char *start = rest.at;

    assert(rest.count < REQUEST_NAMES);
    rest.count++;
    for (;; stop = first) {
        const size_t length = (size_t)(stop - start);

        rest.at = length > behind ? stop - behind : start;
        out_names[rest.count - 1] = (struct zt_text){start, (size_t)(rest.at - start)};
        if (rest.at != start && rest.at != first + 1 &&
            matches_rest(pattern, rest, span, out_names))
            return true;
        if (stop == first)
            return false;
    }
}

static bool starts_with(const char *pattern, const char *placeholder)
{
    return strncmp(pattern, placeholder, strlen(placeholder)) == 0;
}

static bool matches_rest(const char *pattern, struct rest rest, struct model_span *span,
                         struct zt_text out_names[REQUEST_NAMES])
{
    while (*pattern != '\0') {
        const char *stop;
        bool takes_all = false;
        bool may_be_empty;

        if (*pattern != '{') {
            if (rest.at == rest.end || *rest.at != *pattern)
                return false;
            rest.at++;
            pattern++;
            continue;
        }
        may_be_empty =
            starts_with(pattern, OBJECT_PLACEHOLDER) || starts_with(pattern, COMPONENT_PLACEHOLDER);
        if (starts_with(pattern, REPO_PLACEHOLDER))
            return matches_repo(pattern + strlen(REPO_PLACEHOLDER), rest, span, out_names);
        if (starts_with(pattern, MODEL_PLACEHOLDER)) {
            pattern += strlen(MODEL_PLACEHOLDER);
            stop = model_end(span, rest.at, rest.end);
        } else {
            pattern = skip_placeholder(pattern, &takes_all);
            stop = takes_all ? rest_end(rest.at, rest.end, pattern)
                             : name_end(rest.at, rest.end, false);
        }
        if (stop == rest.at && !may_be_empty)
            return false;
        assert(rest.count < REQUEST_NAMES);
        out_names[rest.count++] = (struct zt_text){rest.at, (size_t)(stop - rest.at)};
        rest.at = stop;
    }
    return rest.at == rest.end;
}

static bool matches(const char *pattern, struct zt_text path, struct model_span *span,
                    struct zt_text out_names[REQUEST_NAMES])
{
    return matches_rest(pattern, (struct rest){path.bytes, path.bytes + path.length, 0}, span,
                        out_names);
}

bool route_matches(const char *pattern, struct zt_text path,
                   struct zt_text out_names[REQUEST_NAMES])
{
    struct model_span span = {NULL, NULL};

    return matches(pattern, path, &span, out_names);
}

static bool is_folder(const struct route *route)
{
    return route->pattern[strlen(route->pattern) - 1] == '/';
}

static bool takes_final_slash(const struct route *route)
{
    return route->is_page || route->keeps_names || route->takes_any_names || is_folder(route);
}

/* A table, and the path below its prefix. */
struct place {
    const struct route *routes;
    size_t count;
    struct zt_text path;
};

static const struct route *find_route(const struct place *place,
                                      struct zt_text out_names[REQUEST_NAMES])
{
    const struct zt_text path = place->path;
    const bool ends_in_slash = path.bytes[path.length - 1] == '/';
    const bool is_cut = ends_in_slash && path.length > 1 && path.bytes[path.length - 2] != '/';
    const struct zt_text page = {path.bytes, path.length - is_cut};
    struct model_span span = {NULL, NULL};

    for (size_t i = 0; i < place->count; i++) {
        const struct route *route = &place->routes[i];

        if (ends_in_slash && !takes_final_slash(route))
            continue;
        if (matches(route->pattern, route->is_page ? page : path, &span, out_names))
            return route;
    }
    return NULL;
}

const struct operation *route_operation(const struct route *route, enum method method)
{
    static const struct operation none = {.handle = NULL};

    switch (method) {
    case METHOD_GET:
    case METHOD_HEAD:
        return &route->get;
    case METHOD_PUT:
        return &route->put;
    case METHOD_POST:
        return &route->post;
    case METHOD_DELETE:
        return &route->delete;
    case METHOD_PATCH:
        return &route->patch;
    case METHOD_QUERY:
        return &route->query;
    case METHOD_OPTIONS:
    case METHOD_TRACE:
    case METHOD_CONNECT:
    case METHOD_UNKNOWN:
        break;
    }
    return &none;
}

bool request_is_read(const struct request *request)
{
    if (request->method == METHOD_GET || request->method == METHOD_HEAD)
        return true;
    return request->route != NULL && route_operation(request->route, request->method)->is_read;
}

/* Adds Allow to the reply: the methods of one route, or of all routes if it is NULL. */
static void add_allow(struct request *request, const struct route *route)
{
    static const struct {
        enum method method;
        const char *text;
    } methods[] = {{METHOD_GET, "GET, HEAD, "}, {METHOD_PUT, "PUT, "},
                   {METHOD_POST, "POST, "},     {METHOD_DELETE, "DELETE, "},
                   {METHOD_PATCH, "PATCH, "},   {METHOD_QUERY, "QUERY, "}};
    char allow[ALLOW_SIZE] = "";
    const struct route *first = route != NULL ? route : routes;
    const struct route *end = route != NULL ? route + 1 : routes + route_count;
    const char *value;

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        const struct route *with = first;

        while (with < end && route_operation(with, methods[i].method)->handle == NULL)
            with++;
        if (with < end)
            strcat(allow, methods[i].text);
    }
    assert(strlen(allow) + sizeof("OPTIONS") <= sizeof(allow));
    value = request_print(request, "%sOPTIONS", allow);
    if (value != NULL)
        representation_field(&request->reply, "Allow", value);
}

static void reply_options(struct request *request, const struct route *route)
{
    reply_empty(request, 204);
    add_allow(request, route);
    if (route != NULL && route->options != NULL)
        route->options(request);
}

/* Replaces the raw text of a name by the decoded text. Most names need no decoding and remain
 * pointers into the target. */
static bool decode_name(struct request *request, struct zt_text *name, bool takes_nul)
{
    if (memchr(name->bytes, '%', name->length) != NULL) {
        char *buffer = request_allocate(request, name->length);

        if (buffer == NULL) {
            problem_reply_no_memory(request);
            return false;
        }
        if (!percent_decode(*name, buffer, &name->length)) {
            problem_reply(request, PROBLEM_INVALID_NAME,
                          "a percent-escape in the path is malformed");
            return false;
        }
        name->bytes = buffer;
    }
    if (!takes_nul && memchr(name->bytes, '\0', name->length) != NULL) {
        problem_reply(request, PROBLEM_INVALID_NAME, "a name in the path contains U+0000");
        return false;
    }
    if (!zt_utf8_valid(name->bytes, name->length)) {
        problem_reply(request, PROBLEM_INVALID_NAME, "a name in the path is not UTF-8");
        return false;
    }
    return true;
}

static bool takes_rest(const struct route *route)
{
    return strstr(route->pattern, "...}") != NULL;
}

/* Returns true if the first name may be followed by '@' and a revision. Otherwise the '@' belongs
 * to the name, as it did before there were revisions. */
static bool takes_revision(const struct request *request, const struct route *route)
{
    const struct store *store = request->server->store;

    return store != NULL && store->revisions != NULL && strstr(route->pattern, MODEL_PLACEHOLDER);
}

/* Decodes the name of a model, and the revision that may follow it. The path of a commit's model is
 * a name without a revision, however its slashes are written. Returns false if it has replied. */
static bool decode_model(struct request *request)
{
    struct zt_text revision = {NULL, 0};
    struct zt_text whole = request->names[0];
    struct zt_text model = whole;
    const bool is_split = revision_name_split(request->names[0], &model, &revision);
    struct history_path in_commit;

    if (!decode_name(request, &whole, false))
        return false;
    request->names[0] = request->whole_name = whole;
    if (!is_split || (history_path_split(whole, &in_commit) && in_commit.rest.length > 0))
        return true;
    if (!decode_name(request, &model, false) || !decode_name(request, &revision, false))
        return false;
    request->names[0] = model;
    request->revision = revision;
    return true;
}

/* Returns false if it has replied. */
static bool decode_names(struct request *request, const struct route *route)
{
    unsigned first = 0;

    if (route->is_page || route->keeps_names)
        return true;
    if (takes_revision(request, route)) {
        if (!decode_model(request))
            return false;
        first = 1;
    }
    for (unsigned i = first; i < REQUEST_NAMES && request->names[i].bytes != NULL; i++) {
        if (takes_rest(route) && path_has_encoded_slash(request->names[i])) {
            problem_reply(request, PROBLEM_NOT_FOUND,
                          "no part of a stored file's path may contain a slash");
            return false;
        }
        if (!decode_name(request, &request->names[i], i > 0 && route->takes_any_names))
            return false;
    }
    return true;
}

static const struct operation *choose_operation(struct request *request, const struct route *route)
{
    const struct operation *operation;

    if (request->method == METHOD_OPTIONS) {
        reply_options(request, route);
        return NULL;
    }
    if (route->choose != NULL)
        return route->choose(request);
    operation = route_operation(route, request->method);
    if (operation->handle == NULL) {
        problem_reply(request, PROBLEM_METHOD_NOT_ALLOWED, "%s does not support this method",
                      route->pattern);
        add_allow(request, route);
        return NULL;
    }
    return operation;
}

/* Replies to a target that is not a path: "*", which only OPTIONS may use, or an invalid target. */
static void reply_other_target(struct request *request, enum target_form form)
{
    if (form == TARGET_ASTERISK && request->method == METHOD_OPTIONS) {
        reply_options(request, NULL);
        return;
    }
    problem_reply(request, PROBLEM_INVALID_REQUEST, "the request target is not a path");
}

/* Finds the path below base_path, which a proxy may have removed, and the table for it. Buckets at
 * s3.listen are below nothing: one may have the name of base_path. */
static enum target_form find_place(const struct request *request, struct place *out_place)
{
    const struct config *config = request->server->config;
    const bool is_s3 = request_state_const(request)->is_of_s3_listener;
    struct zt_text path;
    struct zt_text rest;
    const enum target_form form = target_path(request_target(request), &path);

    assert(config != NULL);
    if (form != TARGET_PATH)
        return form;
    if (!is_s3)
        path = path_below(path, config->base_path);
    rest = is_s3 ? path : path_below(path, config->s3.path);
    if (is_s3 || rest.bytes != path.bytes)
        *out_place = (struct place){s3_routes, s3_route_count, rest};
    else
        *out_place = (struct place){routes, route_count, path};
    return form;
}

bool router_path(const struct request *request, struct zt_text *out_path)
{
    struct place place;

    if (find_place(request, &place) != TARGET_PATH)
        return false;
    *out_path = place.path;
    return true;
}

void router_find(struct request *request)
{
    struct zt_text names[REQUEST_NAMES] = {{NULL, 0}};
    struct place place;

    if (find_place(request, &place) != TARGET_PATH)
        return;
    request->route = find_route(&place, names);
    if (request->route != NULL)
        memcpy(request->names, names, sizeof(names));
}

/* Returns true if the path has an empty segment that matters: on some routes it only means that no
 * object has such a name. */
static bool has_empty_segment(const struct route *route, const struct zt_text *names,
                              struct zt_text path)
{
    if (route != NULL && (route->takes_empty_segments || route->takes_any_names))
        path.length = (size_t)(names[1].bytes - path.bytes);
    return path_has_empty_segment(path);
}

const struct operation *router_match(struct request *request)
{
    struct place place;
    enum target_form form;

    if (request->route == NULL)
        router_find(request);
    if (request->method == METHOD_UNKNOWN) {
        problem_reply(request, PROBLEM_NOT_IMPLEMENTED, "this method is unknown");
        return NULL;
    }
    form = find_place(request, &place);
    if (form != TARGET_PATH) {
        reply_other_target(request, form);
        return NULL;
    }
    /* Answer preflights for all paths, since a page can learn of an error only from the answer to
     * its actual request. */
    if (request->method == METHOD_OPTIONS && cors_is_preflight(request)) {
        reply_options(request, request->route);
        return NULL;
    }
    if (has_empty_segment(request->route, request->names, place.path)) {
        problem_reply(request, PROBLEM_INVALID_NAME, "the path contains an empty segment");
        return NULL;
    }
    if (request->route == NULL) {
        problem_reply(request, PROBLEM_NOT_FOUND, "there is no resource at this path");
        return NULL;
    }
    return decode_names(request, request->route) ? choose_operation(request, request->route) : NULL;
}
