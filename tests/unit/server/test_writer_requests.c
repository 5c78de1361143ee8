/* The streaming writer's creation, declarations, status and removal (http-api, section 6.2). */
#include "writer_request.h"

#define UNKNOWN "/v1/uploads/0123456789abcdef0123456789abcdef"

static char target[64];

static void begin(struct world *world)
{
    writer_create(world, "", target);
}

/* --- creation --- */

/* Each request has one fault fewer than the one before it. */
WITH_UPLOADS(creation_is_refused_in_the_order_of_the_contract)
{
    struct asked asked = with_field(to_ask("POST", "/v1/models/.m/uploads"), "If-Match", "*");

    world_wait_loaded(world);
    asked = with_field(asked, "Content-Encoding", "gzip");
    asked.declared = ((uint64_t)4 << 20) + 1;
    world->config.writable = false;
    assert_refused(world, asked, 403, "read-only");
    world->config.writable = true;
    assert_refused(world, asked, 400, "invalid-name");
    asked.target = WRITER_UPLOADS;
    assert_refused(world, asked, 412, "precondition-failed");
    asked.fields[0] = "If-None-Match";
    assert_refused(world, asked, 415, "unsupported-media-type");
    asked.fields[3] = "identity";
    assert_refused(world, asked, 413, "too-large");
    asked.declared = 0;
    assert_status(world, asked, 201);
}

/* The end of an upload is stated in whole seconds, which may change between two responses. */
static void assert_equal_but_for_expiry(const char *one, const char *other)
{
    const char *end = strstr(one, "\"expires\"");
    const char *rest = strstr(one, "\"received\"");
    const char *other_rest = strstr(other, "\"received\"");

    assert_non_null(end);
    assert_non_null(rest);
    assert_non_null(other_rest);
    assert_memory_equal(one, other, (size_t)(end - one));
    assert_string_equal(rest, other_rest);
}

WITH_UPLOADS(creation_is_answered_with_its_place_and_status)
{
    struct answered answered = assert_status(world, to_ask("POST", WRITER_UPLOADS), 201);
    struct answered status;
    char location[64];

    strcpy(location, value_of(&answered, "Location"));
    assert_memory_equal(location, "/v1/uploads/", strlen("/v1/uploads/"));
    assert_int_equal(strlen(location), strlen(UNKNOWN));
    assert_non_null(
        strstr(answered.body, "\"model\":\"m\",\"version\":\"1.2.0\",\"state\":\"open\""));
    status = assert_status(world, to_ask("GET", location), 200);
    assert_equal_but_for_expiry(status.body, answered.body);
}

WITH_UPLOADS(creation_takes_version_and_attributes)
{
    writer_create(world, "{\"version\": \"2\", \"attributes\": {\"a\": [1, null]}}", target);
    assert_status_holds(world, target, "\"version\":\"2\"");
    assert_status_holds(world, target, "\"attributes\":{\"a\":[1,null]}");
}

WITH_UPLOADS(malformed_creations_leave_nothing)
{
    static const char *const texts[] = {
        "{",
        "[]",
        "{\"version\": \"1\"}",
        "{\"version\": 2}",
        "{\"attributes\": []}",
        "{\"other\": 1}",
        "{\"version\": \"2\", \"version\": \"2\"}",
        "{} {}",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_fails_after_body(world, writer_json("POST", WRITER_UPLOADS, texts[i]), 400,
                                "invalid-request");
    assert_nothing_kept(world);
    assert_string_equal(assert_status(world, to_ask("GET", "/v1/uploads"), 200).body,
                        "{\"uploads\":[]}\n");
}

WITH_UPLOADS(chunked_json_past_its_bound_is_refused)
{
    const size_t length = ((size_t)4 << 20) + 1;
    char *spaces = malloc(length);
    struct asked asked = with_body(to_ask("POST", WRITER_UPLOADS), spaces, length);

    memset(spaces, ' ', length);
    asked.chunked = true;
    asked.piece_bytes = length / 3;
    assert_fails_after_body(world, asked, 413, "too-large");
    free(spaces);
}

WITH_UPLOADS(cut_creation_leaves_nothing)
{
    struct sending_request sending;

    sending_begin(world, &sending, writer_json("POST", WRITER_UPLOADS, WRITER_ZT2));
    sending_until(&sending, 5);
    sending_cut(&sending);
    assert_nothing_kept(world);
}

WITH_UPLOADS(precondition_is_checked_again_on_the_disk)
{
    world_wait_loaded(world);
    world_model(world, "m.zt", true);
    assert_fails_after_body(world, with_field(to_ask("POST", WRITER_UPLOADS), "If-None-Match", "*"),
                            412, "precondition-failed");
    assert_nothing_kept(world);
}

/* --- requests to an upload --- */

WITH_UPLOADS(unknown_uploads_are_404)
{
    static const char *const ids[] = {UNKNOWN, "/v1/uploads/x",
                                      "/v1/uploads/0123456789ABCDEF0123456789ABCDEF"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_refused(world, to_ask("GET", ids[i]), 404, "upload-not-found");
        assert_refused(world, to_ask("DELETE", ids[i]), 404, "upload-not-found");
        assert_refused(world, writer_post_commit(ids[i]), 404, "upload-not-found");
        assert_refused(world, writer_declare(ids[i], "/objects/a", "{}"), 404, "upload-not-found");
        assert_refused(world, writer_put(ids[i], "/objects/a/data?dtype=u8&shape=1", "x", 1), 404,
                       "upload-not-found");
    }
}

WITH_UPLOADS(read_only_server_shows_uploads_and_changes_none)
{
    begin(world);
    world->config.writable = false;
    assert_status(world, to_ask("GET", target), 200);
    assert_refused(world, to_ask("DELETE", target), 403, "read-only");
    assert_refused(world, writer_post_commit(target), 403, "read-only");
    assert_refused(world, writer_declare(target, "/objects/a", "{}"), 403, "read-only");
    assert_refused(world, writer_put(target, "/objects/a/data?dtype=u8&shape=1", "x", 1), 403,
                   "read-only");
    /* Nothing is said about uploads that do not exist either. */
    assert_refused(world, to_ask("DELETE", UNKNOWN), 403, "read-only");
}

WITH_UPLOADS(delete_leaves_nothing)
{
    begin(world);
    assert_status(world, writer_put(target, "/objects/a/data?dtype=u8&shape=3", "abc", 3), 201);
    assert_status(world, to_ask("DELETE", target), 204);
    assert_nothing_kept(world);
    assert_refused(world, to_ask("GET", target), 404, "upload-not-found");
    assert_refused(world, to_ask("DELETE", target), 404, "upload-not-found");
    assert_refused(world, writer_post_commit(target), 404, "upload-not-found");
}

WITH_UPLOADS(delete_ends_a_body_on_its_way)
{
    struct sending_request sending;
    struct asked asked;
    struct answered answered;

    begin(world);
    asked = writer_put(target, "/objects/a/data?dtype=u8&shape=6", "abcdef", 6);
    asked.piece_bytes = 3;
    sending_begin(world, &sending, asked);
    sending_until(&sending, 3);
    assert_status(world, to_ask("DELETE", target), 204);
    sending_until(&sending, 6);
    answered = sending_end(&sending);
    assert_problem(&answered, 409, "conflict");
    assert_nothing_kept(world);
}

/* --- declarations --- */

WITH_UPLOADS(first_declaration_is_201_and_the_next_204)
{
    begin(world);
    assert_status(world, writer_declare(target, "/objects/a", "{\"shape\": [2, 3]}"), 201);
    assert_status(world, writer_declare(target, "/objects/a", "{\"shape\": [6]}"), 204);
    assert_status_holds(world, target, "\"a\":{\"shape\":[6],\"format\":\"dense\"");
}

WITH_UPLOADS(declaration_takes_format_and_attributes)
{
    begin(world);
    assert_status(world,
                  writer_declare(target, "/objects/s",
                                 "{\"shape\": [2, 3], \"format\": \"sparse_csr\", "
                                 "\"attributes\": {\"k\": \"v\"}}"),
                  201);
    assert_status_holds(world, target,
                        "\"s\":{\"shape\":[2,3],\"format\":\"sparse_csr\",\"attributes\":"
                        "{\"k\":\"v\"},\"components\":{}}");
}

WITH_UPLOADS(malformed_declarations_change_nothing)
{
    static const char *const texts[] = {
        "{",
        "{\"shape\": 3}",
        "{\"shape\": [-1]}",
        "{\"shape\": [1.5]}",
        "{\"shape\": [4294967296, 4294967296, 2]}",
        "{\"format\": \"sparse_csr\"}",
        "{\"format\": 1}",
        "{\"attributes\": []}",
        "{\"dtype\": \"f32\"}",
    };

    begin(world);
    assert_status(world, writer_declare(target, "/objects/a", "{\"shape\": [2]}"), 201);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_fails_after_body(world, writer_declare(target, "/objects/a", texts[i]), 400,
                                "invalid-request");
    assert_status_holds(world, target, "\"objects\":{\"a\":{\"shape\":[2],");
}

WITH_UPLOADS(names_of_objects_are_decoded)
{
    begin(world);
    assert_status(world, writer_declare(target, "/objects/a%2Fb%25%20c", "{}"), 201);
    assert_status_holds(world, target, "\"a/b% c\":{");
}

WITH_UPLOADS(zt2_bounds_names)
{
    char name[1100] = "/objects/";
    char path[1200];

    memset(name + strlen("/objects/"), 'n', 1025);
    begin(world);
    snprintf(path, sizeof(path), "%s%s", target, name);
    assert_status(world, writer_json("PUT", path, "{}"), 201);
    writer_create(world, WRITER_ZT2, target);
    snprintf(path, sizeof(path), "%s%s", target, name);
    assert_refused(world, writer_json("PUT", path, "{}"), 400, "invalid-name");
    path[strlen(path) - 1] = '\0';
    assert_status(world, writer_json("PUT", path, "{}"), 201);
}

WITH_UPLOADS(declarations_survive_a_restart)
{
    begin(world);
    assert_status(world, writer_declare(target, "/objects/a", "{\"shape\": [2]}"), 201);
    uploads_restart(world);
    assert_status_holds(world, target, "\"objects\":{\"a\":{\"shape\":[2],\"format\":\"dense\"");
}
