/* Manifests as JSON: the shape of the contract for every version of the format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "derived/manifest_json.h"
#include "tests.h"

#define DENSE(rest) "{\"shape\":[2,4],\"format\":\"dense\"" rest "}"
#define DATA(rest) \
    "\"components\":{\"data\":{\"dtype\":\"f32\",\"offset\":64,\"length\":32" rest "}}"

static struct zt_text text(const char *string)
{
    return (struct zt_text){string, strlen(string)};
}

static struct zt_model *open_text(enum container_version version, const char *manifest)
{
    struct container container = {0};
    struct zt_model *model = NULL;
    struct zt_error error;

    container_make(&container, version, 128, manifest);
    if (container_open(&container, container.length, &model, &error) != ZT_OK)
        fail_msg("%s", error.message);
    container_free(&container);
    return model;
}

static const struct manifest_source served = {.name = {"org/m", 5},
                                              .path = "org/m.zt",
                                              .base_path = "",
                                              .etag = "\"tag\"",
                                              .modified_ns = INT64_C(1795166999999999999)};

/* The JSON of a selection; the caller frees it. */
static char *write_text(const struct zt_model *model, const struct manifest_source *source,
                        const struct manifest_selection *selection)
{
    struct json written;
    char *copy;

    json_init(&written, false);
    manifest_write(&written, model, source, selection);
    assert_false(written.failed);
    copy = strndup(written.text, written.length);
    json_free(&written);
    return copy;
}

static char *json;

static int free_json(void **state)
{
    (void)state;
    free(json);
    json = NULL;
    return 0;
}

AROUND_EACH_TEST(NULL, free_json)

/* Leaves the JSON of a selection in json. */
static void write_selection(const char *manifest, const struct manifest_selection *selection)
{
    struct zt_model *model = open_text(CONTAINER_ZT1, manifest);

    free(json);
    json = write_text(model, &served, selection);
    zt_model_free(model);
}

static void assert_has(const char *part)
{
    if (strstr(json, part) == NULL)
        fail_msg("%s is not in %s", part, json);
}

static void assert_lacks(const char *part)
{
    if (strstr(json, part) != NULL)
        fail_msg("%s is in %s", part, json);
}

TEST(a_whole_manifest_has_the_shape_of_the_contract)
{
    struct zt_model *model;
    char size[32];

    model = open_text(
        CONTAINER_ZT1,
        "{\"version\":\"1.2.0\",\"attributes\":{\"framework\":\"x\"},\"objects\":{\"a/b\":" DENSE(
            "," DATA(",\"digest\":\"sha256:00\"")) "}}");
    json = write_text(model, &served, NULL);
    snprintf(size, sizeof(size), "\"size\":%llu", (unsigned long long)model->file_size);
    assert_has("{\"name\":\"org/m\",\"source\":{\"format\":\"zt\",\"version\":\"1.2.0\",");
    assert_has(size);
    assert_has("\"modified\":\"2026-11-20T09:29:59Z\",\"etag\":\"\\\"tag\\\"\",\"href\":\"/"
               "files/org/m.zt\"}");
    assert_has(
        "\"attributes\":{\"framework\":\"x\"},\"objects\":{\"a/b\":"
        "{\"shape\":[2,4],\"format\":\"dense\",\"attributes\":{},\"components\":{\"data\":"
        "{\"dtype\":\"f32\",\"type\":\"f32\",\"offset\":64,\"length\":32,\"encoding\":\"raw\","
        "\"uncompressed_length\":32,\"digest\":\"sha256:00\","
        "\"href\":\"/v1/models/org%2Fm/objects/a%2Fb/data\"}}}}}");
    zt_model_free(model);
}

TEST(version_0_1_is_shown_in_the_same_words)
{
    struct zt_model *model;

    model = open_text(
        CONTAINER_ZT01,
        "[{\"name\":\"w\",\"offset\":64,\"size\":32,\"dtype\":\"float32\",\"shape\":[2,4],"
        "\"layout\":\"dense\",\"encoding\":\"raw\",\"data_endianness\":\"little\"}]");
    json = write_text(model, &served, NULL);
    assert_has("\"version\":\"0.1.0\"");
    assert_has("\"w\":{\"shape\":[2,4],\"format\":\"dense\"");
    assert_has("\"data\":{\"dtype\":\"f32\",\"type\":\"f32\"");
    zt_model_free(model);
}

TEST(what_the_file_does_not_state_is_omitted)
{
    struct zt_model *model;

    model =
        open_text(CONTAINER_ZT1,
                  "{\"version\":\"1.2.0\",\"objects\":{\"a\":{\"shape\":[8],\"format\":\"other\","
                  "\"components\":{"
                  "\"x\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8,\"encoding\":\"lz9\"}}}}}");
    json = write_text(model, &(struct manifest_source){.name = {"m", 1}}, NULL);
    assert_has("\"encoding\":\"lz9\"}");
    assert_lacks("digest");
    assert_lacks("href");
    assert_lacks("etag");
    zt_model_free(model);
}

TEST(each_component_has_its_own_href)
{
    write_selection("{\"version\":\"1.2.0\",\"objects\":{\"a\":{\"shape\":[8],"
                    "\"format\":\"other\",\"components\":{"
                    "\"x\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8},"
                    "\"y\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8}}}}}",
                    NULL);
    assert_has("\"href\":\"/v1/models/org%2Fm/objects/a/x\"");
    assert_has("\"href\":\"/v1/models/org%2Fm/objects/a/y\"");
}

/* "\0" stands for U+0000; the reader accepts both names. */
TEST(names_that_are_empty_or_hold_nul_have_hrefs)
{
    static const char object[] =
        "{\"shape\":[8],\"format\":\"other\",\"components\":{\"%s\":{\"dtype\":\"u8\","
        "\"offset\":64,\"length\":8},\"reached\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8}}}";
    static const char *const names[] = {"", "a\\0b"};
    static const char *const hrefs[] = {"/objects//\"", "/objects/a%00b/a%00b\""};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char of_component[512];
        char manifest[2048];
        struct zt_model *model;

        snprintf(of_component, sizeof(of_component), object, names[i]);
        snprintf(manifest, sizeof(manifest),
                 "{\"version\":\"1.2.0\",\"objects\":{\"%s\":%s,\"x\":%s}}", names[i], of_component,
                 of_component);
        model = open_text(CONTAINER_ZT1, manifest);
        free(json);
        json = write_text(model, &served, NULL);
        assert_has("/objects/x/reached\"");
        assert_has(hrefs[i]);
        zt_model_free(model);
    }
}

#define FOUR                                                                              \
    "{\"version\":\"1.2.0\",\"objects\":{\"a.b\":" DENSE("," DATA("")) ",\"a.w\":" DENSE( \
        "," DATA("")) ",\"ab\":" DENSE("," DATA("")) ",\"b.w\":" DENSE("," DATA("")) "}}"

TEST(a_selection_has_the_objects_of_its_prefix_that_match_any_glob)
{
    static const char *const names[] = {"\"a.b\":", "\"a.w\":", "\"ab\":", "\"b.w\":"};
    const struct zt_text globs[] = {text("*.w"), text("ab")};
    const struct {
        const char *prefix;
        size_t match_count;
        bool has[4];
    } rows[] = {
        {"a.", 0, {true, true, false, false}},
        {"z", 0, {false, false, false, false}},
        {"", 2, {false, true, true, true}},
        {"b", 2, {false, false, false, true}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_selection(FOUR, &(struct manifest_selection){.prefix = text(rows[i].prefix),
                                                           .matches = globs,
                                                           .match_count = rows[i].match_count});
        for (size_t j = 0; j < 4; j++)
            if ((strstr(json, names[j]) != NULL) != rows[i].has[j])
                fail_msg("prefix \"%s\", %zu globs: %s", rows[i].prefix, rows[i].match_count, json);
    }
    write_selection(FOUR, &(struct manifest_selection){.prefix = text("z")});
    assert_has("\"objects\":{}}");
}

TEST(fields_prune_objects)
{
    unsigned fields;

    assert_true(manifest_fields_parse(text("shape,format"), &fields));
    write_selection(FOUR, &(struct manifest_selection){.fields = fields, .prefix = text("ab")});
    assert_has("\"objects\":{\"ab\":{\"shape\":[2,4],\"format\":\"dense\"}}}");
}

TEST(unknown_fields_are_rejected)
{
    unsigned fields = 77;

    assert_false(manifest_fields_parse(text(""), &fields));
    assert_false(manifest_fields_parse(text("shape,"), &fields));
    assert_false(manifest_fields_parse(text("shape,shap"), &fields));
    assert_false(manifest_fields_parse(text("Shape"), &fields));
    assert_int_equal(fields, 77);
    assert_true(manifest_fields_parse(text("components,attributes"), &fields));
    assert_int_equal(fields, MANIFEST_COMPONENTS | MANIFEST_ATTRIBUTES);
}

TEST(times_before_1970_round_down)
{
    struct json written;

    json_init(&written, false);
    manifest_write_time(&written, -1);
    assert_int_equal(written.length, strlen("\"1969-12-31T23:59:59Z\""));
    assert_memory_equal(written.text, "\"1969-12-31T23:59:59Z\"", written.length);
    json_free(&written);
}

TEST(a_name_repeated_too_often_is_reported_as_too_long)
{
    enum { COMPONENTS = 3000, NAME = 40000 };
    struct zt_buffer manifest = {0};
    char name[NAME];
    struct container container = {0};
    struct zt_model *model;
    struct zt_error error;
    struct json written;

    memset(name, '/', sizeof(name));
    zt_cbor_put_map(&manifest, 2);
    zt_cbor_put_string(&manifest, "version");
    zt_cbor_put_string(&manifest, "1.2.0");
    zt_cbor_put_string(&manifest, "objects");
    zt_cbor_put_map(&manifest, 1);
    zt_cbor_put_text(&manifest, (struct zt_text){name, sizeof(name)});
    zt_cbor_put_map(&manifest, 3);
    zt_cbor_put_string(&manifest, "shape");
    zt_cbor_put_array(&manifest, 0);
    zt_cbor_put_string(&manifest, "format");
    zt_cbor_put_string(&manifest, "x");
    zt_cbor_put_string(&manifest, "components");
    zt_cbor_put_map(&manifest, COMPONENTS);
    for (unsigned i = 0; i < COMPONENTS; i++) {
        char component[8];

        snprintf(component, sizeof(component), "%u", i);
        zt_cbor_put_string(&manifest, component);
        zt_cbor_put_map(&manifest, 3);
        zt_cbor_put_string(&manifest, "dtype");
        zt_cbor_put_string(&manifest, "u8");
        zt_cbor_put_string(&manifest, "offset");
        zt_cbor_put_uint(&manifest, 64);
        zt_cbor_put_string(&manifest, "length");
        zt_cbor_put_uint(&manifest, 1);
    }
    model = NULL;
    container_make_bytes(&container, CONTAINER_ZT1, 128, &manifest);
    zt_buffer_free(&manifest);
    assert_ok(container_open(&container, container.length, &model, &error));
    json_init(&written, false);
    manifest_write(&written, model, &served, NULL);
    assert_true(written.failed);
    assert_true(written.too_long);
    assert_true(written.length < 64 * container.manifest_length + (8 << 20));
    json_free(&written);
    zt_model_free(model);
    container_free(&container);
}
