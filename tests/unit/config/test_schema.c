/* The table of keys, and the two files that follow it: config/ztserve.json and
 * config/ztserve.schema.json. */
#include "tests.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/schema.h"

static json_t *load(const char *name)
{
    char path[1024];
    json_error_t error;
    json_t *document;

    snprintf(path, sizeof(path), "%s/config/%s", ZT_SOURCE_DIR, name);
    document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (document == NULL)
        fail_msg("%s: %s", path, error.text);
    return document;
}

/* The value of a dotted name; between stands between group and key ("properties" in the
 * schema). */
static json_t *find(json_t *document, const char *name, const char *between)
{
    const char *dot = strchr(name, '.');
    char group[64];
    json_t *inside = between != NULL ? json_object_get(document, between) : document;

    if (dot == NULL)
        return json_object_get(inside, name);
    snprintf(group, sizeof(group), "%.*s", (int)(dot - name), name);
    inside = json_object_get(inside, group);
    if (between != NULL)
        inside = json_object_get(inside, between);
    return json_object_get(inside, dot + 1);
}

static size_t count_leaves(json_t *document)
{
    size_t count = 0;
    const char *name;
    json_t *value;

    json_object_foreach(document, name, value)
    {
        count += json_is_object(value) ? json_object_size(value) : 1;
    }
    return count;
}

static json_t *expected_default(const struct config_key *key)
{
    if (config_type_is_number(key->type))
        return key->nullable ? json_null() : json_integer(key->number);
    if (key->type == CONFIG_TYPE_BOOL)
        return json_boolean(key->number != 0);
    if (key->type == CONFIG_TYPE_LIST || key->type == CONFIG_TYPE_UPSTREAMS)
        return json_array();
    if (key->type == CONFIG_TYPE_CHOICE)
        return json_string(key->choices[key->number]);
    return key->text != NULL ? json_string(key->text) : json_null();
}

static const char *expected_type(const struct config_key *key)
{
    if (config_type_is_number(key->type))
        return "integer";
    if (key->type == CONFIG_TYPE_LIST || key->type == CONFIG_TYPE_UPSTREAMS)
        return "array";
    return key->type == CONFIG_TYPE_BOOL ? "boolean" : "string";
}

TEST(the_defaults_file_states_every_default)
{
    json_t *document = load("ztserve.json");

    for (size_t i = 0; i < config_keys_count; i++) {
        json_t *expected = expected_default(&config_keys[i]);

        if (!json_equal(find(document, config_keys[i].name, NULL), expected))
            fail_msg("config/ztserve.json: %s is not the default of the table",
                     config_keys[i].name);
        json_decref(expected);
    }
    assert_int_equal(count_leaves(document), config_keys_count);
    json_decref(document);
}

TEST(the_defaults_file_loads_as_the_defaults)
{
    struct config defaults, loaded;
    struct config_message message;

    config_defaults(&defaults);
    config_defaults(&loaded);
    loaded.threads = 7;
    assert_true(config_load_file(&loaded, ZT_SOURCE_DIR "/config/ztserve.json", &message));
    assert_memory_equal(&loaded, &defaults, sizeof(loaded));
}

static void check_schema_of(json_t *property, const struct config_key *key)
{
    json_t *type = json_object_get(property, "type");
    json_t *expected = expected_default(key);

    if (property == NULL)
        fail_msg("config/ztserve.schema.json: %s is missing", key->name);
    assert_string_equal(json_string_value(json_object_get(property, "description")), key->meaning);
    assert_true(json_equal(json_object_get(property, "default"), expected));
    if (key->nullable)
        assert_string_equal(json_string_value(json_array_get(type, 1)), "null");
    assert_string_equal(json_string_value(key->nullable ? json_array_get(type, 0) : type),
                        expected_type(key));
    if (config_type_is_number(key->type)) {
        assert_true(json_integer_value(json_object_get(property, "minimum")) == key->minimum);
        assert_true(json_integer_value(json_object_get(property, "maximum")) == key->maximum);
    }
    json_decref(expected);
}

static void check_words_of(json_t *property, const struct config_key *key)
{
    json_t *words = json_object_get(property, "enum");
    size_t count = 0;

    for (; key->choices[count] != NULL; count++)
        assert_string_equal(json_string_value(json_array_get(words, count)), key->choices[count]);
    assert_int_equal(json_array_size(words), count);
}

TEST(the_schema_file_agrees_with_the_table)
{
    json_t *document = load("ztserve.schema.json");
    json_t *properties = json_object_get(document, "properties");
    size_t count = 0;
    const char *name;
    json_t *value;

    for (size_t i = 0; i < config_keys_count; i++) {
        json_t *property = find(document, config_keys[i].name, "properties");

        check_schema_of(property, &config_keys[i]);
        if (config_keys[i].type == CONFIG_TYPE_CHOICE)
            check_words_of(property, &config_keys[i]);
    }
    json_object_foreach(properties, name, value)
    {
        json_t *inside = json_object_get(value, "properties");

        count += inside != NULL ? json_object_size(inside) : 1;
    }
    assert_int_equal(count, config_keys_count);
    json_decref(document);
}

TEST(the_schema_file_agrees_with_the_table_of_upstreams)
{
    json_t *document = load("ztserve.schema.json");
    json_t *upstreams = json_object_get(json_object_get(document, "properties"), "upstreams");
    json_t *properties = json_object_get(json_object_get(upstreams, "items"), "properties");

    assert_int_equal(json_integer_value(json_object_get(upstreams, "maxItems")),
                     CONFIG_UPSTREAMS_MAX);
    assert_int_equal(json_object_size(properties), config_upstream_keys_count);
    for (size_t i = 0; i < config_upstream_keys_count; i++) {
        const struct config_key *key = &config_upstream_keys[i];
        json_t *property = json_object_get(properties, key->name);

        /* url has no default. */
        if (strcmp(key->name, "url") != 0)
            check_schema_of(property, key);
        if (key->type == CONFIG_TYPE_CHOICE)
            check_words_of(property, key);
    }
    json_decref(document);
}

TEST(every_key_has_a_default_within_its_bounds)
{
    for (size_t i = 0; i < config_keys_count; i++) {
        const struct config_key *key = &config_keys[i];

        assert_ptr_equal(config_key_find(key->name), key);
        assert_true(strlen(key->meaning) > 0 && strchr(key->meaning, '\n') == NULL);
        if (config_type_is_number(key->type))
            assert_true(key->minimum <= key->number && key->number <= key->maximum);
    }
}

TEST(a_variable_is_the_name_in_capitals)
{
    assert_ptr_equal(config_key_find_variable("ZTSERVE_UPLOAD_MAX_BYTES", 24),
                     config_key_find("upload.max_bytes"));
    assert_ptr_equal(config_key_find_variable("ZTSERVE_LISTEN", 14), config_key_find("listen"));
    assert_null(config_key_find_variable("ZTSERVE_LISTENS", 15));
    assert_null(config_key_find_variable("ztserve_listen", 14));
    assert_null(config_key_find_variable("ZTSERVE_", 8));
}

TEST(a_typing_error_gets_the_closest_key_and_another_word_none)
{
    char longest[200];

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_string_equal(config_key_suggest("upload.max_byte")->name, "upload.max_bytes");
    assert_string_equal(config_key_suggest("lisen")->name, "listen");
    assert_string_equal(config_key_suggest("limits.conections_per_adress")->name,
                        "limits.connections_per_address");
    assert_null(config_key_suggest("qqqqqqq"));
    assert_null(config_key_suggest(longest));
    assert_null(config_key_suggest(""));
}

TEST(what_reloads_is_put_in_force_and_nothing_else)
{
    struct config in_force;
    struct config wanted;

    config_defaults(&in_force);
    config_defaults(&wanted);
    wanted.threads = 7;
    wanted.writable = true;
    wanted.drain_s = 5;
    wanted.log.level = CONFIG_LOG_DEBUG;
    wanted.metrics.public = true;
    wanted.upload.max_bytes = 12345;
    config_put_in_force(&in_force, &wanted);
    assert_int_equal(in_force.threads, 0);
    assert_false(in_force.writable);
    assert_int_equal(in_force.drain_s, 5);
    assert_int_equal(in_force.log.level, CONFIG_LOG_DEBUG);
    assert_true(config_flag(&in_force.metrics.public));
    assert_int_equal(config_number(&in_force.upload.max_bytes), 12345);
}

TEST(every_number_of_limits_and_uploads_reloads)
{
    for (size_t i = 0; i < config_keys_count; i++) {
        const struct config_key *key = &config_keys[i];

        if (strncmp(key->name, "limits.", 7) == 0 || strncmp(key->name, "upload.", 7) == 0)
            assert_true(key->reloads);
    }
}
