/* Routing on raw paths, against a table of the test's own. */
#include "tests.h"

#include <string.h>

#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "store/store.h"

static enum outcome handle(struct request *request)
{
    (void)request;
    return OUTCOME_READY;
}

const struct route routes[] = {
    {.pattern = "/v1/models", .get = {.handle = handle}},
    {.pattern = "/v1/models/{model}", .get = {.handle = handle}, .put = {.handle = handle}},
    {.pattern = "/v1/models/{model}/verification",
     .get = {.handle = handle},
     .post = {.handle = handle}},
    {.pattern = "/v1/models/{model}/export",
     .post = {.handle = handle, .is_read = true},
     .query = {.handle = handle, .is_read = true}},
    {.pattern = "/v1/models/{model}/objects/{object}", .get = {.handle = handle}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}", .get = {.handle = handle}},
    {.pattern = "/api/models/{repo}/refs", .get = {.handle = handle}},
    {.pattern = "/api/models/{repo}/tree/{revision...}", .get = {.handle = handle}},
    {.pattern = "/api/models/{repo}", .get = {.handle = handle}},
    {.pattern = "/{repo}/resolve/{revision...}", .get = {.handle = handle}},
    {.pattern = "/{repo}.git/info/{oid}", .get = {.handle = handle}},
    {.pattern = "/files/{path...}", .get = {.handle = handle}},
    {.pattern = "/files/", .get = {.handle = handle}},
    {.pattern = "/files/{path...}/", .get = {.handle = handle}},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

static struct config config;
static struct server server = {.config = &config};

static const struct store_revision_ops revisions;
static struct store store = {.revisions = &revisions};
static struct server keeping_server = {.config = &config, .store = &store};

static struct request *routed_by(struct server *by, enum method method, const char *target)
{
    struct request *request = request_new(by, NULL, target);
    const struct operation *operation;

    assert_non_null(request);
    request->method = method;
    operation = router_match(request);
    assert_int_equal(operation == NULL, request->replied);
    return request;
}

static struct request *routed(enum method method, const char *target)
{
    return routed_by(&server, method, target);
}

static const char *allow_of(const struct request *request)
{
    for (unsigned i = 0; i < request->reply.field_count; i++)
        if (strcmp(request->reply.fields[i].name, "Allow") == 0)
            return request->reply.fields[i].value;
    return "";
}

static void assert_status(enum method method, const char *target, unsigned status, const char *code)
{
    struct request *request = routed(method, target);

    assert_true(request->replied);
    assert_int_equal(request->reply.status, status);
    if (code != NULL) {
        char body[512] = "";

        assert_true(request->reply.length < sizeof(body));
        memcpy(body, request->reply.segments[0].bytes, request->reply.length);
        assert_non_null(strstr(body, code));
    }
    request_free(request);
}

/* The names are joined by '|'. */
static void assert_routed(const char *target, const char *pattern, const char *names)
{
    struct request *request = routed(METHOD_GET, target);
    char joined[256] = "";

    assert_false(request->replied);
    assert_string_equal(request->route->pattern, pattern);
    for (unsigned i = 0; i < REQUEST_NAMES && request->names[i].bytes != NULL; i++) {
        strcat(joined, i > 0 ? "|" : "");
        strncat(joined, request->names[i].bytes, request->names[i].length);
    }
    assert_string_equal(joined, names);
    request_free(request);
}

TEST(paths_find_their_route)
{
    assert_routed("/v1/models", "/v1/models", "");
    assert_routed("/v1/models?prefix=a/b", "/v1/models", "");
    assert_routed("/v1/models/a", "/v1/models/{model}", "a");
    assert_routed("/v1/models/a/verification", "/v1/models/{model}/verification", "a");
    assert_routed("/v1/models/a/objects/b", "/v1/models/{model}/objects/{object}", "a|b");
    assert_routed("/v1/models/a/objects/b/c", "/v1/models/{model}/objects/{object}/{component}",
                  "a|b|c");
    assert_routed("/files/a/b/c.zt", "/files/{path...}", "a/b/c.zt");
    assert_routed("/files/", "/files/", "");
    assert_routed("/files/a/", "/files/{path...}/", "a");
    assert_routed("/files/a/b%20c/?x=/", "/files/{path...}/", "a/b c");
}

TEST(what_stands_behind_a_repository_is_no_part_of_its_name)
{
    assert_routed("/a/b.git/info/x", "/{repo}.git/info/{oid}", "a/b|x");
    assert_routed("/a.git/info/x", "/{repo}.git/info/{oid}", "a|x");
    assert_routed("/a/b.git.git/info/x", "/{repo}.git/info/{oid}", "a/b.git|x");
    assert_routed("/info/info.git/info/info", "/{repo}.git/info/{oid}", "info/info|info");
    assert_status(METHOD_GET, "/a/b/info/x", 404, "not-found");
    assert_status(METHOD_GET, "/a/.git/info/x", 404, "not-found");
    assert_status(METHOD_GET, "/.git/info/x", 404, "not-found");
    assert_status(METHOD_GET, "/a/git/info/x", 404, "not-found");
    assert_status(METHOD_GET, "/a.git/b/info/x", 404, "not-found");
}

/* What follows the name of a repository wins over its second part. */
TEST(repositories_have_one_segment_or_two)
{
    assert_routed("/api/models/a/b", "/api/models/{repo}", "a/b");
    assert_routed("/api/models/a", "/api/models/{repo}", "a");
    assert_routed("/api/models/a/refs", "/api/models/{repo}/refs", "a");
    assert_routed("/api/models/a/b/refs", "/api/models/{repo}/refs", "a/b");
    assert_routed("/api/models/a/refs/refs", "/api/models/{repo}/refs", "a/refs");
    assert_routed("/api/models/a/tree/main", "/api/models/{repo}/tree/{revision...}", "a|main");
    assert_routed("/api/models/a/b/tree/main/c/d", "/api/models/{repo}/tree/{revision...}",
                  "a/b|main/c/d");
    assert_routed("/a/b/resolve/main/c", "/{repo}/resolve/{revision...}", "a/b|main/c");
    assert_routed("/a/resolve/main/c", "/{repo}/resolve/{revision...}", "a|main/c");
    assert_routed("/a/resolve/resolve/x", "/{repo}/resolve/{revision...}", "a/resolve|x");
    assert_status(METHOD_GET, "/api/models/a/b/c", 404, "not-found");
    assert_status(METHOD_GET, "/a/b/c/resolve/main/d", 404, "not-found");
    assert_status(METHOD_GET, "/resolve/main/c", 404, "not-found");
    assert_status(METHOD_GET, "//resolve/main/c", 400, "invalid-name");
}

TEST(names_are_decoded_after_the_shape_is_known)
{
    assert_routed("/v1/models/a%2Fb", "/v1/models/{model}", "a/b");
    assert_routed("/v1/models/a%2fb/objects/%25/%C3%A9",
                  "/v1/models/{model}/objects/{object}/{component}", "a/b|%|é");
    assert_routed("/v1/models/m/objects/%2E%2E", "/v1/models/{model}/objects/{object}", "m|..");
    assert_routed("/v1/models/m/objects/a%3Fb", "/v1/models/{model}/objects/{object}", "m|a?b");
    assert_routed("/v1/models/a%252F", "/v1/models/{model}", "a%2F");
    assert_routed("/v1/models/a+b", "/v1/models/{model}", "a+b");
    assert_routed("/files/a%20b/c", "/files/{path...}", "a b/c");
}

TEST(dot_segments_are_names)
{
    assert_routed("/v1/models/..", "/v1/models/{model}", "..");
    assert_routed("/files/../../etc/passwd", "/files/{path...}", "../../etc/passwd");
    assert_status(METHOD_GET, "/files/..%2F..%2Fetc", 404, "not-found");
    assert_status(METHOD_GET, "/v1/../v1/models", 404, "not-found");
}

TEST(an_absolute_target_means_its_path)
{
    assert_routed("http://example/v1/models/a?x", "/v1/models/{model}", "a");
    assert_routed("HTTPS://example:1/v1/models", "/v1/models", "");
    assert_status(METHOD_GET, "http://example", 404, "not-found");
}

TEST(a_path_is_found_with_the_base_path_and_without_it)
{
    strcpy(config.base_path, "/below/it");
    assert_routed("/below/it/v1/models", "/v1/models", "");
    assert_routed("/v1/models", "/v1/models", "");
    assert_routed("http://example.org/below/it/files/a", "/files/{path...}", "a");
    assert_status(METHOD_GET, "/below/it/below/it/v1/models", 404, "not-found");
    assert_status(METHOD_GET, "/below/v1/models", 404, "not-found");
    assert_status(METHOD_GET, "/below/it//v1/models", 400, "invalid-name");
    strcpy(config.base_path, "");
    assert_status(METHOD_GET, "/below/it/v1/models", 404, "not-found");
}

TEST(unknown_paths_are_not_found)
{
    static const char *const targets[] = {"/",
                                          "/v1",
                                          "/v1/",
                                          "/v1/models/",
                                          "/v1/models/a/",
                                          "/v1/models/a/objects",
                                          "/v1/models/a/objects/b/c/d",
                                          "/v1/models/a/objects/b/c/",
                                          "/v1/modelsx",
                                          "/v1/model",
                                          "/V1/models",
                                          "/files",
                                          "/v1/models/a/verification/",
                                          "/v1/mode%6Cs"};

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        assert_status(METHOD_GET, targets[i], 404, "\"not-found\"");
}

TEST(invalid_names_are_refused)
{
    static const char *const targets[] = {
        "/v1/models/%",   "/v1/models/a%2",       "/v1/models/%zz",
        "/v1/models/%2g", "/v1/models/%00",       "/v1/models/%FF",
        "/v1/models/%C3", "/v1/models/%ED%A0%80", "/v1/models/\xff",
        "/v1//models",    "//v1/models",          "/v1/models//objects/b",
        "/files/a//b",    "/files/%zz",           "/v1/models/a/objects/%C3/%A9"};

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        for (enum method method = METHOD_GET; method < METHOD_UNKNOWN; method++)
            assert_status(method, targets[i], 400, "\"invalid-name\"");
}

TEST(other_methods_get_the_allowed_ones)
{
    struct request *request;

    assert_status(METHOD_POST, "/v1/models/a", 405, "\"method-not-allowed\"");
    assert_status(METHOD_PATCH, "/v1/models/a", 405, "\"method-not-allowed\"");
    assert_status(METHOD_TRACE, "/v1/models/a", 405, "\"method-not-allowed\"");
    assert_status(METHOD_CONNECT, "/v1/models/a", 405, "\"method-not-allowed\"");
    assert_status(METHOD_QUERY, "/v1/models/a", 405, "\"method-not-allowed\"");
    assert_status(METHOD_TRACE, "/nowhere", 404, "\"not-found\"");
    request = routed(METHOD_DELETE, "/v1/models/a/verification");
    assert_string_equal(allow_of(request), "GET, HEAD, POST, OPTIONS");
    request_free(request);
}

TEST(query_has_its_own_operation)
{
    struct request *request = request_new(&server, NULL, "/v1/models/a/export");
    const struct operation *operation;

    request->method = METHOD_QUERY;
    operation = router_match(request);
    assert_ptr_equal(operation, &request->route->query);
    request_free(request);
    request = routed(METHOD_DELETE, "/v1/models/a/export");
    assert_string_equal(allow_of(request), "POST, QUERY, OPTIONS");
    request_free(request);
}

static bool reads(enum method method, const char *target)
{
    struct request *request = request_new(&server, NULL, target);
    bool is_read;

    request->method = method;
    router_find(request);
    is_read = request_is_read(request);
    request_free(request);
    return is_read;
}

TEST(a_post_reads_only_where_the_route_says_so)
{
    assert_true(reads(METHOD_GET, "/v1/models/a"));
    assert_true(reads(METHOD_HEAD, "/nowhere"));
    assert_true(reads(METHOD_POST, "/v1/models/a/export"));
    assert_true(reads(METHOD_QUERY, "/v1/models/a/export"));
    assert_false(reads(METHOD_POST, "/v1/models/a/verification"));
    assert_false(reads(METHOD_QUERY, "/v1/models/a"));
    assert_false(reads(METHOD_POST, "/nowhere"));
}

TEST(an_unknown_method_is_not_implemented)
{
    assert_status(METHOD_UNKNOWN, "/v1/models", 501, "\"not-implemented\"");
    assert_status(METHOD_UNKNOWN, "/nowhere", 501, "\"not-implemented\"");
}

TEST(head_is_answered_by_get)
{
    struct request *request;

    request = request_new(&server, NULL, "/v1/models");
    request->method = METHOD_HEAD;
    assert_ptr_equal(router_match(request), &routes[0].get);
    request_free(request);
}

TEST(options_lists_the_methods)
{
    struct request *request;

    request = routed(METHOD_OPTIONS, "/v1/models/a");
    assert_int_equal(request->reply.status, 204);
    assert_string_equal(allow_of(request), "GET, HEAD, PUT, OPTIONS");
    request_free(request);
    request = routed(METHOD_OPTIONS, "*");
    assert_int_equal(request->reply.status, 204);
    assert_string_equal(allow_of(request), "GET, HEAD, PUT, POST, QUERY, OPTIONS");
    request_free(request);
    assert_status(METHOD_OPTIONS, "/nowhere", 404, "\"not-found\"");
}

TEST(a_target_that_is_not_a_path_is_refused)
{
    assert_status(METHOD_GET, "*", 400, "\"invalid-request\"");
    assert_status(METHOD_GET, "v1/models", 400, "\"invalid-request\"");
    assert_status(METHOD_GET, "", 400, "\"invalid-request\"");
    assert_status(METHOD_GET, "ftp://example/v1/models", 400, "\"invalid-request\"");
}

TEST(a_name_is_never_empty)
{
    struct zt_text names[REQUEST_NAMES];

    assert_true(route_matches("/a/{x}/b", (struct zt_text){"/a/1/b", 6}, names));
    assert_false(route_matches("/a/{x}/b", (struct zt_text){"/a//b", 5}, names));
    assert_false(route_matches("/a/{x...}", (struct zt_text){"/a/", 3}, names));
}

static void assert_model(const char *pattern, const char *path, const char *model)
{
    struct zt_text names[REQUEST_NAMES];

    assert_int_equal(route_matches(pattern, zt_text_from(path), names), model != NULL);
    if (model != NULL)
        assert_true(zt_text_is(names[0], model));
}

TEST(a_model_is_its_first_segment_and_those_up_to_a_resource)
{
    assert_model("/m/{model}", "/m/a/b/c", "a/b/c");
    assert_model("/m/{model}", "/m/a/", NULL);
    assert_model("/m/{model}", "/m/a/b/", NULL);
    assert_model("/m/{model}", "/m/a//b", NULL);
    assert_model("/m/{model}", "/m/objects", "objects");
    assert_model("/m/{model}", "/m/a/objects", NULL);
    assert_model("/m/{model}", "/m/a/objectsx/uploadsy", "a/objectsx/uploadsy");
    assert_model("/m/{model}/objects/{object}", "/m/a/b/objects/c", "a/b");
    assert_model("/m/{model}/objects/{object}", "/m/objects/objects/objects", "objects");
    assert_model("/m/{model}/objects/{object}", "/m/a/objects/b/c", NULL);
    assert_model("/m/{model}/export", "/m/a/b/export", "a/b");
    assert_model("/m/{model}/export", "/m/export/export", "export");
    assert_model("/m/{model}/export", "/m/a/objects/export", NULL);
    assert_model("/m/{x}/export", "/m/a/b/export", NULL);
}

/* revision NULL: the name has none. */
static void assert_revision(struct server *by, const char *target, const char *name,
                            const char *revision)
{
    struct request *request = routed_by(by, METHOD_GET, target);

    assert_false(request->replied);
    assert_true(zt_text_is(request->names[0], name));
    assert_int_equal(request->revision.bytes != NULL, revision != NULL);
    if (revision != NULL)
        assert_true(zt_text_is(request->revision, revision));
    request_free(request);
}

#define COMMIT "0123456789012345678901234567890123456789"

TEST(revision_is_split_from_the_name_of_a_model)
{
    struct server *by = &keeping_server;

    assert_revision(by, "/v1/models/a@v1", "a", "v1");
    assert_revision(by, "/v1/models/a/b@v1/objects/c", "a/b", "v1");
    assert_revision(by, "/v1/models/a%2Fb@x%2Fy/objects/c", "a/b", "x/y");
    assert_revision(by, "/v1/models/a%40b@v1%40", "a@b", "v1@");
    assert_revision(by, "/v1/models/a@b@v1", "a@b", "v1");
    assert_revision(by, "/v1/models/a%40v1", "a@v1", NULL);
    assert_revision(by, "/v1/models/a@", "a@", NULL);
    assert_revision(by, "/files/a@v1", "a@v1", NULL);
    assert_revision(&server, "/v1/models/a@v1", "a@v1", NULL);
}

TEST(path_of_a_commit_has_no_revision)
{
    struct server *by = &keeping_server;

    assert_revision(by, "/v1/models/a@" COMMIT "/b", "a@" COMMIT "/b", NULL);
    assert_revision(by, "/v1/models/a%2Fb@" COMMIT "%2Fc", "a/b@" COMMIT "/c", NULL);
    assert_revision(by, "/v1/models/a%40" COMMIT "%2Fc@v1", "a@" COMMIT "/c@v1", NULL);
    assert_revision(by, "/v1/models/a@" COMMIT, "a", COMMIT);
}
