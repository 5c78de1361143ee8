/* Every route that writes, or hands out what lets a client write, refuses foreign pages and
 * hosts. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/cors.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"

#define TARGET_SIZE 256

/* Routes whose GET hands out nothing that lets a client write. Think before adding one: a page that
 * reached the server by DNS rebinding can read all of these. */
static const char *const reads[] = {
    "/v1/models",
    "/v1/models/{model}",
    "/v1/models/{model}/objects/{object}",
    "/v1/models/{model}/objects/{object}/{component}",
    "/v1/models/{model}/objects/{object}/{component}/statistics",
    "/v1/models/{model}/objects/{object}/{component}/preview",
    "/v1/models/{model}/export",
    "/v1/models/{model}/verification",
    "/v1/models/{model}/revisions",
    "/v1/models/{model}/revisions/{name}",
    "/v1/uploads/{id}",
    "/v1/resumable/{id}",
    "/v1/blobs/sha256/{hex}",
    "/v1/upstreams",
    "/v1/upstreams/{upstream}/repositories",
    "/v1/upstreams/{upstream}/prefetch",
    "/files/{path...}",
    "/files",
    "/files/",
    "/files/{path...}/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/version",
    "/openapi.json",
    "/",
    "/ui",
    "/ui/assets/{path...}",
    "/ui/{path...}",
    "/api/models",
    "/api/models/{repo}/auth-check",
    "/api/models/{repo}/refs",
    "/api/models/{repo}/commits/{revision...}",
    "/api/models/{repo}/revision/{revision...}",
    "/api/models/{repo}/tree/{revision...}",
    "/api/models/{repo}",
    "/api/whoami-v2",
    "/api/cas/{path...}",
    "/api/datasets/{path...}",
    "/api/spaces/{path...}",
    "/api/kernels/{path...}",
    "/api/{path...}",
    "/datasets/{path...}",
    "/spaces/{path...}",
    "/kernels/{path...}",
    "/{repo}/resolve/{revision...}",
    "/{repo}/raw/{revision...}",
};

static struct config config = {.writable = true};
static struct server server = {.config = &config};
/* As of a server on a loopback address without tokens. */
static const struct access loopback = {.pages = {.local_names = true}};

static bool is_read(const char *pattern, enum method method)
{
    /* Its body only describes what the GET in the list hands out. */
    if (strcmp(pattern, "/v1/models/{model}/export") == 0)
        return true;
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
        if (strcmp(reads[i], pattern) == 0)
            return method == METHOD_GET || method == METHOD_HEAD;
    return false;
}

/* A target of the pattern: each name is "x". */
static void fill_in(const char *pattern, char out_target[TARGET_SIZE])
{
    size_t at = 0;

    for (const char *from = pattern; *from != '\0'; from++) {
        assert_true(at + 2 < TARGET_SIZE);
        out_target[at++] = *from != '{' ? *from : 'x';
        if (*from == '{')
            from = strchr(from, '}');
    }
    out_target[at] = '\0';
}

static void add(struct request *request, const char *name, const char *value)
{
    const struct header_field field = {name, value, (uint32_t)strlen(name),
                                       (uint32_t)strlen(value)};

    assert_true(request_add_header(request, field));
}

/* Whether a request for the route is refused. */
static bool is_refused(const struct route *route, enum method method, const char *host,
                       const char *origin)
{
    char target[TARGET_SIZE];
    struct request *request;
    bool refused;

    fill_in(route->pattern, target);
    request = request_new(&server, NULL, target);
    assert_non_null(request);
    request->method = method;
    request->access = &loopback;
    request->route = route;
    add(request, "Host", host);
    if (origin != NULL)
        add(request, "Origin", origin);
    cors_check(request);
    refused = request->replied;
    assert_true(!refused || request->reply.status == 403);
    request_free(request);
    return refused;
}

static void assert_all(const char *host, const char *origin)
{
    static const enum method methods[] = {METHOD_GET,    METHOD_HEAD,  METHOD_PUT,  METHOD_POST,
                                          METHOD_DELETE, METHOD_PATCH, METHOD_QUERY};
    size_t writes = 0;

    for (size_t i = 0; i < route_count; i++)
        for (size_t k = 0; k < sizeof(methods) / sizeof(methods[0]); k++) {
            const char *pattern = routes[i].pattern;

            if (route_operation(&routes[i], methods[k])->handle == NULL)
                continue;
            if (is_refused(&routes[i], methods[k], host, origin) == is_read(pattern, methods[k]))
                fail_msg("%s %s", method_name(methods[k]), pattern);
            writes += !is_read(pattern, methods[k]);
        }
    assert_true(writes > 40);
}

TEST(every_write_refuses_a_rebound_name)
{
    assert_all("evil.example", "http://evil.example");
}

TEST(every_write_refuses_a_foreign_page)
{
    assert_all("localhost", "https://evil.example");
}

TEST(every_write_accepts_a_program_on_this_machine)
{
    for (size_t i = 0; i < route_count; i++)
        for (enum method method = METHOD_GET; method <= METHOD_QUERY; method++)
            assert_false(is_refused(&routes[i], method, "127.0.0.1:8080", NULL));
}

TEST(every_read_in_the_list_is_a_route)
{
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        size_t k = 0;

        while (k < route_count && strcmp(routes[k].pattern, reads[i]) != 0)
            k++;
        if (k == route_count)
            fail_msg("%s", reads[i]);
    }
}
