/* The index beside the parts of a model: what is read, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "join/index.h"
#include "sources.h"
#include "tests.h"

/* Reads a text; ^ in it is left out, and *out_mark becomes its position. */
static enum zt_status read_marked(const char *text, struct zt_index **out_index, uint64_t *out_mark,
                                  struct zt_error *error)
{
    char *bytes = strdup(text);
    char *mark = strchr(bytes, '^');

    struct zt_source *source;
    enum zt_status status;

    *out_mark = mark != NULL ? (uint64_t)(mark - bytes) : 0;
    if (mark != NULL)
        memmove(mark, mark + 1, strlen(mark));
    source = memory_source(bytes, strlen(bytes));
    status = zt_index_read(source, out_index, error);
    zt_source_close(source);
    free(bytes);
    return status;
}

static struct zt_index *read_good(const char *text)
{
    struct zt_index *index = NULL;
    struct zt_error error;
    uint64_t mark;

    if (read_marked(text, &index, &mark, &error) != ZT_OK)
        fail_msg("%s: %s", text, error.message);
    return index;
}

static void assert_refused(const char *text, const char *rule)
{
    struct zt_index *index = NULL;
    struct zt_error error;
    uint64_t mark;

    if (read_marked(text, &index, &mark, &error) == ZT_OK)
        fail_msg("%s is read", text);
    assert_failure(&error, ZT_INVALID, rule, mark);
    assert_null(index);
}

TEST(index_names_parts_and_tensors)
{
    struct zt_index *index = read_good(
        "{\n  \"metadata\": {\"total_parameters\": 7, \"total_size\": 28},\n  \"weight_map\": {"
        "\"b\": \"m-00002-of-00002.safetensors\", \"a\\u00e9\": \"m-00001-of-00002.safetensors\","
        "\"\": \"m-00002-of-00002.safetensors\"}, \"later\": [{\"weight_map\": 1}]\n}\n");
    size_t count = 0;
    const struct zt_text *parts = zt_index_parts(index, &count);
    const struct zt_index_entry *entry;
    uint64_t total = 0;

    assert_int_equal(count, 2);
    assert_true(zt_text_is(parts[0], "m-00001-of-00002.safetensors"));
    assert_true(zt_text_is(parts[1], "m-00002-of-00002.safetensors"));
    assert_int_equal(index->entry_count, 3);
    entry = zt_index_find(index, zt_text_from("a\xc3\xa9"));
    assert_non_null(entry);
    assert_int_equal(entry->part, 0);
    assert_int_equal(zt_index_find(index, zt_text_from("b"))->part, 1);
    assert_int_equal(zt_index_find(index, zt_text_from(""))->part, 1);
    assert_null(zt_index_find(index, zt_text_from("c")));
    assert_true(zt_index_total_size(index, &total));
    assert_int_equal(total, 28);
    zt_index_free(index);
}

TEST(total_size_is_a_whole_number_or_none)
{
    static const struct {
        const char *metadata;
        bool is_stated;
    } cases[] = {
        {"{\"total_size\": 28}", true},
        {"{\"total_size\": 28.0}", true},
        {"{\"total_size\": 28.5}", false},
        {"{\"total_size\": -28}", false},
        {"{\"total_size\": \"\\u0032\\u0038\"}", false},
        {"{\"total_size\": [28]}", false},
        {"{\"total_size\": 99999999999999999999}", false},
        {"{\"total_size\": null}", false},
        {"{\"loss\": NaN, \"total_size\": 28, \"best\": [-Infinity, Infinity]}", true},
        {"{\"total_size\": NaN}", false},
        {"{}", false},
        {"null", false},
        {"\"a\\n\"", false},
        {"[]", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zt_index *index;
        char text[128];
        uint64_t total = 0;

        snprintf(text, sizeof(text), "{\"metadata\":%s,\"weight_map\":{\"a\":\"p\"}}",
                 cases[i].metadata);
        index = read_good(text);
        assert_int_equal(zt_index_total_size(index, &total), cases[i].is_stated);
        assert_int_equal(total, cases[i].is_stated ? 28 : 0);
        zt_index_free(index);
    }
}

TEST(index_refuses_what_is_no_index)
{
    assert_refused("", "index §Json JsonSyntax");
    assert_refused("\xef\xbb\xbf{\"weight_map\":{\"a\":\"p\"}}", "index §Json JsonSyntax");
    assert_refused("{\"weight_map\":{\"a\":\"p\"}^", "index §Json JsonSyntax");
    assert_refused("{\"weight_map\":{\"a\":\"p\",^}}", "index §Json JsonSyntax");
    assert_refused("{\"weight_map\":{\"a\":\"p\"}}\n^{}", "index §Json JsonSyntax");
    assert_refused("[]", "index §Json Schema");
    assert_refused("{}", "index §Json Schema");
    assert_refused("{\"metadata\":{\"total_size\":1}}\n", "index §Json Schema");
    assert_refused("{\"weight_map\":{}}", "index §Json Schema");
    assert_refused("{\"weight_map\":^[]}", "index §Json Schema");
    assert_refused("{\"weight_map\":{\"a\":^1}}", "index §Json Schema");
    assert_refused("{\"weight_map\":{\"a\":^{\"a\":\"p\"}}}", "index §Json Schema");
    assert_refused("{\"weight_map\":{\"a\":^null}}", "index §Json Schema");
}

TEST(index_refuses_what_is_named_twice)
{
    assert_refused("{\"weight_map\":{\"a\":\"p\",\"b\":\"p\",\"^\\u0061\":\"p\"}}",
                   "index §Json DuplicateKey");
    assert_refused("{\"weight_map\":{\"a\":\"p\"},\"^weight_map\":{\"b\":\"p\"}}",
                   "index §Json DuplicateKey");
    assert_refused("{\"metadata\":{},\"weight_map\":{\"a\":\"p\"},\"^metadata\":{}}",
                   "index §Json DuplicateKey");
    assert_refused("{\"metadata\":{\"total_size\":1,\"^total_size\":1}}",
                   "index §Json DuplicateKey");
}

TEST(index_refuses_files_that_are_not_beside_it)
{
    static const char *const names[] = {
        "",
        ".",
        "..",
        "../p",
        "/p",
        "a/",
        "a/../p",
        "a/.",
        "a\\\\p",
        "..\\\\p",
        ".hidden",
        "p\\u0000",
        "p\\n",
        "./..",
        ".a/p",
        "a/.b/p",
        "./a/../",
        "//p",
        "a/model.safetensors.index.json",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[128];

        snprintf(text, sizeof(text), "{\"weight_map\":{\"a\":\"p\",\"b\":^\"%s\"}}", names[i]);
        assert_refused(text, "index §Parts FileName");
    }
}

TEST(index_names_parts_by_their_shortest_paths)
{
    struct zt_index *index =
        read_good("{\"weight_map\":{\"a\":\"./p\",\"b\":\"p\",\"c\":\"././/p\","
                  "\"d\":\"sub/./q\",\"e\":\"./sub//q\",\"f\":\"sub/r/s\"}}");
    size_t count = 0;
    const struct zt_text *parts = zt_index_parts(index, &count);

    assert_int_equal(count, 3);
    assert_true(zt_text_is(parts[0], "p"));
    assert_true(zt_text_is(parts[1], "sub/q"));
    assert_true(zt_text_is(parts[2], "sub/r/s"));
    assert_int_equal(zt_index_find(index, zt_text_from("c"))->part, 0);
    assert_int_equal(zt_index_find(index, zt_text_from("e"))->part, 1);
    zt_index_free(index);
}

TEST(index_refuses_a_name_longer_than_files_have)
{
    char text[400];

    snprintf(text, sizeof(text), "{\"weight_map\":{\"a\":\"%0255d\"}}", 1);
    zt_index_free(read_good(text));
    snprintf(text, sizeof(text), "{\"weight_map\":{\"a\":^\"%0256d\"}}", 1);
    assert_refused(text, "index §Parts FileName");
}

TEST(index_refuses_deep_nesting)
{
    char text[400] = "{\"weight_map\":{\"a\":\"p\"},\"x\":";

    for (unsigned i = 0; i < 63; i++)
        strcat(text, "[");
    strcat(text, "^[");
    assert_refused(text, "index §Json JsonDepth");
}

/* --- bounds --- */

TEST(index_of_a_gigabyte_is_refused_unread)
{
    struct sparse_source source = {.base = {&sparse_source_ops}, .size = (uint64_t)1 << 30};
    struct zt_index *index = NULL;
    struct zt_error error;

    assert_int_equal(zt_index_read(&source.base, &index, &error), ZT_LIMIT);
    assert_null(index);
    assert_int_equal(source.read_bytes, 0);
}

static struct zt_index *read_of_parts(unsigned parts, enum zt_status *out_status)
{
    struct zt_buffer text = {0};
    struct zt_index *index = NULL;
    struct zt_source *source;
    struct zt_error error;
    char entry[64];

    zt_buffer_append(&text, "{\"weight_map\":{", 15);
    for (unsigned i = 0; i < parts; i++) {
        snprintf(entry, sizeof(entry), "%s\"t%u\":\"p%u\"", i > 0 ? "," : "", i, parts - i);
        zt_buffer_append(&text, entry, strlen(entry));
    }
    zt_buffer_append(&text, "}}", 2);
    source = memory_source((const char *)text.bytes, text.length);
    *out_status = zt_index_read(source, &index, &error);
    zt_source_close(source);
    zt_buffer_free(&text);
    return index;
}

TEST(index_names_at_most_as_many_parts_as_can_be_opened)
{
    enum zt_status status;
    struct zt_index *index = read_of_parts(ZT_PARTS_MAX, &status);

    assert_ok(status);
    assert_int_equal(index->part_count, ZT_PARTS_MAX);
    for (uint32_t i = 0; i < index->part_count; i++) {
        assert_int_equal(zt_index_part(index, index->parts[i]), i);
        assert_true(i == 0 || zt_text_compare(index->parts[i - 1], index->parts[i]) < 0);
    }
    assert_true(zt_text_is(index->parts[zt_index_find(index, zt_text_from("t0"))->part], "p1024"));
    zt_index_free(index);
    assert_null(read_of_parts(ZT_PARTS_MAX + 1, &status));
    assert_int_equal(status, ZT_LIMIT);
}

/* --- names of parts --- */

TEST(part_names_state_number_and_count)
{
    static const struct {
        const char *name;
        size_t stem;
        uint32_t number;
        uint32_t count;
    } cases[] = {
        {"model-00001-of-00003", 5, 1, 3},
        {"m-00001-of-00001-00002-of-00002", 16, 2, 2},
        {"x-99999-of-99999", 1, 99999, 99999},
        {"-00001-of-00003", 0, 0, 0},
        {"model-00000-of-00003", 0, 0, 0},
        {"model-00004-of-00003", 0, 0, 0},
        {"model-0001-of-00003", 0, 0, 0},
        {"model-000001-of-00003", 0, 0, 0},
        {"model-00001-of-00003.gguf", 0, 0, 0},
        {"model_00001-of-00003", 0, 0, 0},
        {"model-00001_of-00003", 0, 0, 0},
        {"model-+0001-of-00003", 0, 0, 0},
        {"", 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t stem = 0;
        uint32_t number = 0;
        uint32_t count = 0;

        assert_int_equal(zt_part_name_split(zt_text_from(cases[i].name), &stem, &number, &count),
                         cases[i].number > 0);
        assert_int_equal(stem, cases[i].stem);
        assert_int_equal(number, cases[i].number);
        assert_int_equal(count, cases[i].count);
    }
}
