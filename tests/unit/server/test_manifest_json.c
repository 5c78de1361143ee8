/* Manifests as JSON: the shape of the contract for every version of the format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "derived/manifest_json.h"
#include "support.h"

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
    struct json json;
    char *copy;

    json_init(&json, false);
    manifest_write(&json, model, source, selection);
    assert_false(json.failed);
    copy = strndup(json.text, json.length);
    json_free(&json);
    return copy;
}

static void assert_has(const char *text_, const char *part)
{
    if (strstr(text_, part) == NULL)
        fail_msg("%s is not in %s", part, text_);
}

static void assert_lacks(const char *text_, const char *part)
{
    if (strstr(text_, part) != NULL)
        fail_msg("%s is in %s", part, text_);
}

static void a_whole_manifest_has_the_shape_of_the_contract(void **state)
{
    struct zt_model *model;
    char *json;
    char size[32];

    (void)state;
    model = open_text(
        CONTAINER_ZT1,
        "{\"version\":\"1.2.0\",\"attributes\":{\"framework\":\"x\"},\"objects\":{\"a/b\":" DENSE(
            "," DATA(",\"digest\":\"sha256:00\"")) "}}");
    json = write_text(model, &served, NULL);
    snprintf(size, sizeof(size), "\"size\":%llu", (unsigned long long)model->file_size);
    assert_has(json, "{\"name\":\"org/m\",\"source\":{\"format\":\"zt\",\"version\":\"1.2.0\",");
    assert_has(json, size);
    assert_has(json, "\"modified\":\"2026-11-20T09:29:59Z\",\"etag\":\"\\\"tag\\\"\",\"href\":\"/"
                     "files/org/m.zt\"}");
    assert_has(
        json,
        "\"attributes\":{\"framework\":\"x\"},\"objects\":{\"a/b\":"
        "{\"shape\":[2,4],\"format\":\"dense\",\"attributes\":{},\"components\":{\"data\":"
        "{\"dtype\":\"f32\",\"type\":\"f32\",\"offset\":64,\"length\":32,\"encoding\":\"raw\","
        "\"uncompressed_length\":32,\"digest\":\"sha256:00\","
        "\"href\":\"/v1/models/org%2Fm/objects/a%2Fb/data\"}}}}}");
    free(json);
    zt_model_free(model);
}

static void version_0_1_is_shown_in_the_same_words(void **state)
{
    struct zt_model *model;
    char *json;

    (void)state;
    model = open_text(
        CONTAINER_ZT01,
        "[{\"name\":\"w\",\"offset\":64,\"size\":32,\"dtype\":\"float32\",\"shape\":[2,4],"
        "\"layout\":\"dense\",\"encoding\":\"raw\",\"data_endianness\":\"little\"}]");
    json = write_text(model, &served, NULL);
    assert_has(json, "\"version\":\"0.1.0\"");
    assert_has(json, "\"w\":{\"shape\":[2,4],\"format\":\"dense\"");
    assert_has(json, "\"data\":{\"dtype\":\"f32\",\"type\":\"f32\"");
    free(json);
    zt_model_free(model);
}

static void what_the_file_does_not_state_is_omitted(void **state)
{
    struct zt_model *model;
    char *json;

    (void)state;
    model =
        open_text(CONTAINER_ZT1,
                  "{\"version\":\"1.2.0\",\"objects\":{\"a\":{\"shape\":[8],\"format\":\"other\","
                  "\"components\":{"
                  "\"x\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8,\"encoding\":\"lz9\"}}}}}");
    json = write_text(model, &(struct manifest_source){.name = {"m", 1}}, NULL);
    assert_has(json, "\"encoding\":\"lz9\"}");
    assert_lacks(json, "digest");
    assert_lacks(json, "href");
    assert_lacks(json, "etag");
    free(json);
    zt_model_free(model);
}

static void each_component_has_its_own_href(void **state)
{
    struct zt_model *model;
    char *json;

    (void)state;
    model = open_text(CONTAINER_ZT1, "{\"version\":\"1.2.0\",\"objects\":{\"a\":{\"shape\":[8],"
                                     "\"format\":\"other\",\"components\":{"
                                     "\"x\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8},"
                                     "\"y\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8}}}}}");
    json = write_text(model, &served, NULL);
    assert_has(json, "\"href\":\"/v1/models/org%2Fm/objects/a/x\"");
    assert_has(json, "\"href\":\"/v1/models/org%2Fm/objects/a/y\"");
    free(json);
    zt_model_free(model);
}

/* "\0" stands for U+0000; the reader accepts both names. */
static void names_that_no_url_can_hold_have_no_href(void **state)
{
    static const char object[] =
        "{\"shape\":[8],\"format\":\"other\",\"components\":{\"%s\":{\"dtype\":\"u8\","
        "\"offset\":64,\"length\":8},\"reached\":{\"dtype\":\"u8\",\"offset\":64,\"length\":8}}}";
    static const char *const odd[] = {"", "a\\0b"};

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char of_component[512];
        char manifest[2048];
        struct zt_model *model;
        char *json;
        char *reference;

        snprintf(of_component, sizeof(of_component), object, odd[i]);
        snprintf(manifest, sizeof(manifest),
                 "{\"version\":\"1.2.0\",\"objects\":{\"%s\":%s,\"x\":%s}}", odd[i], of_component,
                 of_component);
        model = open_text(CONTAINER_ZT1, manifest);
        json = write_text(model, &served, NULL);
        reference = strstr(json, "\"href\":\"/v1/");
        assert_non_null(reference);
        assert_has(reference, "/objects/x/reached\"");
        assert_lacks(reference + 1, "\"href\"");
        free(json);
        zt_model_free(model);
    }
}

static struct zt_model *open_four(void)
{
    return open_text(CONTAINER_ZT1,
                     "{\"version\":\"1.2.0\",\"objects\":{"
                     "\"a.b\":" DENSE("," DATA("")) ",\"a.w\":" DENSE("," DATA(
                         "")) ",\"ab\":" DENSE("," DATA("")) ",\"b.w\":" DENSE("," DATA("")) "}}");
}

static void a_prefix_selects_the_objects_that_start_with_it(void **state)
{
    struct zt_model *model;
    char *json;

    (void)state;
    model = open_four();
    json = write_text(model, &served, &(struct manifest_selection){.prefix = text("a.")});
    assert_has(json, "\"a.b\":");
    assert_has(json, "\"a.w\":");
    assert_lacks(json, "\"ab\":");
    assert_lacks(json, "\"b.w\":");
    free(json);
    json = write_text(model, &served, &(struct manifest_selection){.prefix = text("z")});
    assert_has(json, "\"objects\":{}}");
    free(json);
    zt_model_free(model);
}

static void any_of_several_globs_selects_within_the_prefix(void **state)
{
    const struct zt_text globs[] = {text("*.w"), text("ab")};
    struct zt_model *model;
    char *json;

    (void)state;
    model = open_four();
    json = write_text(model, &served,
                      &(struct manifest_selection){.matches = globs, .match_count = 2});
    assert_lacks(json, "\"a.b\":");
    assert_has(json, "\"a.w\":");
    assert_has(json, "\"ab\":");
    assert_has(json, "\"b.w\":");
    free(json);
    json = write_text(
        model, &served,
        &(struct manifest_selection){.matches = globs, .match_count = 2, .prefix = text("b")});
    assert_lacks(json, "\"a.w\":");
    assert_has(json, "\"b.w\":");
    free(json);
    zt_model_free(model);
}

static void fields_prune_objects(void **state)
{
    struct zt_model *model;
    unsigned fields;
    char *json;

    (void)state;
    model = open_four();
    assert_true(manifest_fields_parse(text("shape,format"), &fields));
    json = write_text(model, &served,
                      &(struct manifest_selection){.fields = fields, .prefix = text("ab")});
    assert_has(json, "\"objects\":{\"ab\":{\"shape\":[2,4],\"format\":\"dense\"}}}");
    free(json);
    zt_model_free(model);
}

static void unknown_fields_are_rejected(void **state)
{
    unsigned fields = 77;

    (void)state;
    assert_false(manifest_fields_parse(text(""), &fields));
    assert_false(manifest_fields_parse(text("shape,"), &fields));
    assert_false(manifest_fields_parse(text("shape,shap"), &fields));
    assert_false(manifest_fields_parse(text("Shape"), &fields));
    assert_int_equal(fields, 77);
    assert_true(manifest_fields_parse(text("components,attributes"), &fields));
    assert_int_equal(fields, MANIFEST_COMPONENTS | MANIFEST_ATTRIBUTES);
}

static void times_before_1970_round_down(void **state)
{
    struct json json;

    (void)state;
    json_init(&json, false);
    manifest_write_time(&json, -1);
    assert_int_equal(json.length, strlen("\"1969-12-31T23:59:59Z\""));
    assert_memory_equal(json.text, "\"1969-12-31T23:59:59Z\"", json.length);
    json_free(&json);
}

static void a_name_repeated_too_often_is_reported_as_too_long(void **state)
{
    enum { COMPONENTS = 3000, NAME = 40000 };
    struct zt_buffer manifest = {0};
    char name[NAME];
    struct container container = {0};
    struct zt_model *model;
    struct zt_error error;
    struct json json;

    (void)state;
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
    assert_int_equal(container_open(&container, container.length, &model, &error), ZT_OK);
    json_init(&json, false);
    manifest_write(&json, model, &served, NULL);
    assert_true(json.failed);
    assert_true(json.too_long);
    assert_true(json.length < 64 * container.manifest_length + (8 << 20));
    json_free(&json);
    zt_model_free(model);
    container_free(&container);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_manifest_has_the_shape_of_the_contract),
        cmocka_unit_test(version_0_1_is_shown_in_the_same_words),
        cmocka_unit_test(what_the_file_does_not_state_is_omitted),
        cmocka_unit_test(each_component_has_its_own_href),
        cmocka_unit_test(names_that_no_url_can_hold_have_no_href),
        cmocka_unit_test(a_prefix_selects_the_objects_that_start_with_it),
        cmocka_unit_test(any_of_several_globs_selects_within_the_prefix),
        cmocka_unit_test(fields_prune_objects),
        cmocka_unit_test(unknown_fields_are_rejected),
        cmocka_unit_test(times_before_1970_round_down),
        cmocka_unit_test(a_name_repeated_too_often_is_reported_as_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
