/* The description of the API agrees with the table of routes. */
#include "tests.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "http/exchange/cors.h"
#include "http/exchange/problem.h"
#include "http/exchange/router.h"

#define PATH_SIZE 128

static const char *const methods[] = {"get", "put", "post", "delete", "patch"};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

static const struct operation *operation_of(const struct route *route, size_t method)
{
    const struct operation *const operations[METHODS] = {&route->get, &route->put, &route->post,
                                                         &route->delete, &route->patch};

    return operations[method];
}

/* A pattern as the document writes it: {path...} is {path} there, and {path...}/ {path}/. */
static void path_of(const char *pattern, char out_path[PATH_SIZE])
{
    const char *dots = strstr(pattern, "...}");
    int length = dots != NULL ? (int)(dots - pattern) : (int)strlen(pattern);

    assert_in_range(
        snprintf(out_path, PATH_SIZE, "%.*s%s", length, pattern, dots != NULL ? dots + 3 : ""), 1,
        PATH_SIZE - 1);
}

static int load(void **state)
{
    *state = json_loads(openapi_text, JSON_REJECT_DUPLICATES, NULL);
    return *state != NULL ? 0 : -1;
}

static int unload(void **state)
{
    json_decref(*state);
    return 0;
}

/* The target of "#/components/kind/name". */
static json_t *follow(json_t *document, const char *reference)
{
    char kind[32];
    char name[64];

    assert_int_equal(sscanf(reference, "#/components/%31[^/]/%63s", kind, name), 2);
    return json_object_get(json_object_get(json_object_get(document, "components"), kind), name);
}

static json_t *resolve(json_t *document, json_t *value)
{
    const char *reference = json_string_value(json_object_get(value, "$ref"));

    return reference != NULL ? follow(document, reference) : value;
}

#define PREPARED(name) TEST_WITH(name, load, unload)

PREPARED(the_document_states_the_version_of_the_program)
{
    assert_int_equal(openapi_length, strlen(openapi_text));
    assert_string_equal(json_string_value(json_object_get(*state, "openapi")), "3.1.0");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(*state, "info"), "version")),
        ZTSERVE_VERSION);
    assert_null(strstr(openapi_text, "VERSION@"));
}

PREPARED(every_route_and_method_is_described)
{
    json_t *paths = json_object_get(*state, "paths");

    for (size_t i = 0; i < route_count; i++) {
        char path[PATH_SIZE];

        path_of(routes[i].pattern, path);
        for (size_t method = 0; method < METHODS; method++) {
            json_t *described = json_object_get(json_object_get(paths, path), methods[method]);

            if ((operation_of(&routes[i], method)->handle != NULL) != (described != NULL))
                fail_msg("%s %s is %s", methods[method], path,
                         described != NULL ? "no route" : "not described");
        }
    }
}

/* OpenAPI 3.1 has no operation for QUERY: the POST that does the same names it. */
PREPARED(every_query_is_named_by_its_post)
{
    json_t *paths = json_object_get(*state, "paths");
    unsigned count = 0;

    for (size_t i = 0; i < route_count; i++) {
        char path[PATH_SIZE];
        json_t *post;
        json_t *named;

        path_of(routes[i].pattern, path);
        post = json_object_get(json_object_get(paths, path), "post");
        named = json_array_get(json_object_get(post, "x-additional-methods"), 0);
        assert_int_equal(named != NULL, routes[i].query.handle != NULL);
        if (named == NULL)
            continue;
        assert_string_equal(json_string_value(named), "QUERY");
        assert_ptr_equal(routes[i].query.handle, routes[i].post.handle);
        assert_true(routes[i].query.is_read);
        count++;
    }
    assert_true(count > 0);
}

PREPARED(every_described_path_is_a_route)
{
    const char *path;
    json_t *item;

    json_object_foreach(json_object_get(*state, "paths"), path, item)
    {
        size_t i = 0;
        char own[PATH_SIZE] = "";
        const char *method;
        json_t *operation;

        for (; i < route_count && strcmp(own, path) != 0; i++)
            path_of(routes[i].pattern, own);
        if (strcmp(own, path) != 0)
            fail_msg("%s is no route", path);
        json_object_foreach(item, method, operation)
        {
            size_t at = 0;

            while (at < METHODS && strcmp(methods[at], method) != 0)
                at++;
            assert_true(at < METHODS);
        }
    }
}

/* The scope that a route needs. */
static const char *scope_of(const struct route *route, size_t method)
{
    switch (operation_of(route, method)->needs) {
    case NEEDS_BY_METHOD:
        break;
    case NEEDS_READ:
        return "read";
    case NEEDS_WRITE:
        return "write";
    case NEEDS_ADMIN:
        return "admin";
    }
    return strcmp(methods[method], "get") == 0 ? "read" : "write";
}

/* [{"token": [scope]}, {"certificate": [scope]}], and {} if nothing may suffice too. */
static void assert_security(const json_t *security, const struct route *route, size_t method)
{
    const char *scope = scope_of(route, method);
    static const char *const schemes[] = {"token", "certificate"};

    if (route->audience == AUDIENCE_EVERYBODY) {
        assert_true(json_is_array(security));
        assert_int_equal(json_array_size(security), 0);
        return;
    }
    assert_int_equal(json_array_size(security), route->audience == AUDIENCE_METRICS ? 3 : 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *scopes = json_object_get(json_array_get(security, i), schemes[i]);

        assert_int_equal(json_array_size(scopes), 1);
        assert_string_equal(json_string_value(json_array_get(scopes, 0)), scope);
    }
}

PREPARED(described_scopes_are_those_of_the_routes)
{
    json_t *paths = json_object_get(*state, "paths");

    for (size_t i = 0; i < route_count; i++) {
        char path[PATH_SIZE];

        path_of(routes[i].pattern, path);
        for (size_t method = 0; method < METHODS; method++) {
            json_t *described = json_object_get(json_object_get(paths, path), methods[method]);

            if (described != NULL)
                assert_security(json_object_get(described, "security"), &routes[i], method);
        }
    }
}

/* Each name in braces is a path parameter of the operation, and no other is. */
static void assert_path_parameters(json_t *document, const char *path, json_t *operation)
{
    size_t in_path = 0;
    size_t braces = 0;
    size_t index;
    json_t *parameter;

    json_array_foreach(json_object_get(operation, "parameters"), index, parameter)
    {
        char braced[64];

        parameter = resolve(document, parameter);
        assert_non_null(json_object_get(parameter, "description"));
        if (strcmp(json_string_value(json_object_get(parameter, "in")), "path") != 0)
            continue;
        in_path++;
        snprintf(braced, sizeof(braced), "{%s}",
                 json_string_value(json_object_get(parameter, "name")));
        assert_non_null(strstr(path, braced));
    }
    for (const char *at = path; (at = strchr(at, '{')) != NULL; at++)
        braces++;
    assert_int_equal(in_path, braces);
}

/* Every failure is a problem, with a status from the table of problems. */
static void assert_problems(json_t *document, json_t *operation)
{
    const char *status;
    json_t *response;

    json_object_foreach(json_object_get(operation, "responses"), status, response)
    {
        unsigned number = (unsigned)strtoul(status, NULL, 10);
        unsigned known = 0;

        response = resolve(document, response);
        assert_non_null(response);
        if (number < 400)
            continue;
        for (enum problem problem = 0; problem < PROBLEM_COUNT; problem++)
            known += problem_status(problem) == number;
        assert_true(known > 0);
        assert_non_null(
            json_object_get(json_object_get(response, "content"), "application/problem+json"));
    }
}

PREPARED(operations_are_complete)
{
    const char *path;
    const char *method;
    json_t *item;
    json_t *operation;

    json_object_foreach(json_object_get(*state, "paths"), path, item)
    {
        json_object_foreach(item, method, operation)
        {
            assert_non_null(json_object_get(operation, "operationId"));
            assert_non_null(json_object_get(operation, "summary"));
            assert_path_parameters(*state, path, operation);
            assert_problems(*state, operation);
        }
    }
}

PREPARED(every_code_of_a_problem_is_listed)
{
    json_t *schema = follow(*state, "#/components/schemas/Problem");
    json_t *codes =
        json_object_get(json_object_get(json_object_get(schema, "properties"), "code"), "enum");

    size_t listed = 0;

    for (enum problem problem = 0; problem < PROBLEM_COUNT; problem++)
        /* Other problems have the same codes. */
        if (problem != PROBLEM_LOCKED && problem != PROBLEM_RULE_UNUSED &&
            problem != PROBLEM_UPSTREAM_REFUSED)
            assert_string_equal(json_string_value(json_array_get(codes, listed++)),
                                problem_code(problem));
    assert_int_equal(json_array_size(codes), listed);
}

/* Fails if a reference has no target. */
static void assert_references(json_t *document, json_t *value)
{
    const char *key;
    size_t index;
    json_t *child;

    if (json_is_object(value)) {
        json_object_foreach(value, key, child)
        {
            if (strcmp(key, "$ref") == 0 && follow(document, json_string_value(child)) == NULL)
                fail_msg("%s leads nowhere", json_string_value(child));
            assert_references(document, child);
        }
    }
    json_array_foreach(value, index, child) assert_references(document, child);
}

PREPARED(every_reference_has_a_target)
{
    assert_references(*state, *state);
}

/* Whether a name is one of the words of a list ("A, B"). */
static bool is_listed(const char *name, const char *list)
{
    const size_t length = strlen(name);

    for (const char *at = list; (at = strcasestr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* Asserts it for the "headers" of all answers below value. */
static unsigned assert_exposed(json_t *value)
{
    /* What pages may read without being told so (Fetch, section 2.2.2). */
    static const char always[] = "Cache-Control, Content-Language, Content-Length, Content-Type, "
                                 "Expires, Last-Modified, Pragma";
    json_t *headers = json_object_get(value, "headers");
    const char *name;
    json_t *member;
    size_t index;
    unsigned count = 0;

    json_object_foreach(headers, name, member)
    {
        if (!is_listed(name, always) && !is_listed(name, cors_exposed))
            fail_msg("web pages cannot read %s", name);
        count++;
    }
    json_object_foreach(value, name, member) count += assert_exposed(member);
    json_array_foreach(value, index, member) count += assert_exposed(member);
    return count;
}

PREPARED(web_pages_can_read_every_field_of_every_answer)
{
    json_t *components = json_object_get(*state, "components");

    assert_true(assert_exposed(json_object_get(*state, "paths")) > 0);
    assert_true(assert_exposed(json_object_get(components, "responses")) > 0);
}
