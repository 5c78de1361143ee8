/* Reads and prints the configuration as JSON, with jansson.
 *
 * Keys are nested one level deep: {"listen": "…", "upload": {"max_bytes": 1}}. jansson reports line
 * and column of syntax errors and repeated keys; all other errors name the line and the key in full
 * ("upload.max_bytes"). */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/position.h"
#include "config/schema.h"
#include "config/upstreams.h"
#include "config/value.h"

/* A configuration fits on a page: a larger file was named by mistake. */
#define FILE_MAX_BYTES ((size_t)1 << 20)
/* Longer than the full name of any key; in messages, longer names are cut. */
#define NAME_SIZE 256

struct loading {
    struct config *config;
    const char *path; /* of the file */
    const char *text;
    size_t length;
    struct config_message *message;
};

/* The start of a message about a key: the file, and the line if it is known. */
struct place {
    char text[CONFIG_TEXT_SIZE + 32];
};

/* The start of a message about a value: the place, and the key. */
#define ORIGIN_SIZE (sizeof(struct place) + NAME_SIZE)

static struct place place_of(const struct loading *loading, const char *group, const char *name)
{
    const unsigned line = config_line_of(loading->text, loading->length, group, name);
    struct place place;

    if (line > 0)
        snprintf(place.text, sizeof(place.text), "%s: line %u", loading->path, line);
    else
        snprintf(place.text, sizeof(place.text), "%s", loading->path);
    return place;
}

/* Opens a regular file. A FIFO would stop a reload for good, and with it all signals. */
static FILE *open_regular(const char *path, struct config_message *message)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    FILE *file = NULL;

    if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            config_say(message, "%s: is not a regular file", path);
            close(descriptor);
            return NULL;
        }
        file = fdopen(descriptor, "rb");
    }
    if (file != NULL)
        return file;
    config_say(message, "%s: %s", path, strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return NULL;
}

/* Reads the whole file into *out_bytes; the caller frees it. */
static bool read_file(const char *path, char **out_bytes, size_t *out_length,
                      struct config_message *message)
{
    FILE *file = open_regular(path, message);
    char *bytes = NULL;
    size_t length;
    bool done = false;

    if (file == NULL)
        return false;
    bytes = malloc(FILE_MAX_BYTES + 1);
    if (bytes == NULL) {
        config_say(message, "%s: out of memory", path);
        goto out;
    }
    length = fread(bytes, 1, FILE_MAX_BYTES + 1, file);
    if (ferror(file)) {
        config_say(message, "%s: %s", path, strerror(errno));
        goto out;
    }
    if (length > FILE_MAX_BYTES) {
        config_say(message, "%s: is larger than 1 MiB", path);
        goto out;
    }
    *out_bytes = bytes;
    *out_length = length;
    bytes = NULL;
    done = true;
out:
    free(bytes);
    fclose(file);
    return done;
}

/* The key whose closing quote is text[end], without its quotes. jansson reports the position after
 * a repeated key, but its message names only short keys. */
static const char *key_at(const char *text, size_t end, int *out_length)
{
    const char *quote = memrchr(text, '"', end);
    const char *key = quote != NULL ? quote + 1 : text;

    assert(text[end] == '"');
    *out_length = (int)(text + end - key);
    return key;
}

static json_t *parse_json(const struct loading *loading, const char *text, size_t length)
{
    json_error_t error;
    json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);

    if (document != NULL)
        return document;
    if (json_error_code(&error) == json_error_duplicate_key) {
        int key_length;
        const char *key = key_at(text, (size_t)error.position - 1, &key_length);

        config_say(loading->message, "%s: line %d, column %d: key \"%.*s\" is repeated",
                   loading->path, error.line, error.column, key_length, key);
    } else {
        config_say(loading->message, "%s: line %d, column %d: not valid JSON: %s", loading->path,
                   error.line, error.column, error.text);
    }
    return NULL;
}

static bool fail_unknown(const struct loading *loading, const char *where, const char *path)
{
    const struct config_key *nearest = config_key_suggest(path);

    if (config_key_find(path) != NULL)
        return config_fail(loading->message,
                           "%s: unknown key \"%s\" at the top level; groups are nested objects",
                           where, path);
    if (nearest != NULL)
        return config_fail(loading->message, "%s: unknown key \"%s\"; did you mean \"%s\"?", where,
                           path, nearest->name);
    return config_fail(loading->message, "%s: unknown key \"%s\"", where, path);
}

static bool set_list(const struct loading *loading, void *values, const struct config_key *key,
                     const json_t *words, const char *origin)
{
    size_t index;
    json_t *word;

    assert(key->type == CONFIG_TYPE_LIST);
    config_value_reset(values, key);
    json_array_foreach(words, index, word)
    {
        if (!json_is_string(word))
            return config_fail_expected(key, origin, loading->message);
        if (!config_value_add_word(values, key, json_string_value(word), origin, loading->message))
            return false;
    }
    return true;
}

/* Sets a key of a configuration, or of an upstream. */
static bool set_value(const struct loading *loading, void *values, const struct config_key *key,
                      const char *origin, const json_t *value)
{
    struct config_message *message = loading->message;

    if (key->nullable && json_is_null(value)) {
        config_value_reset(values, key);
        return true;
    }
    if (key->can_be_off && json_is_false(value))
        return config_value_set_off(values, key);
    if (config_type_is_number(key->type) && json_is_integer(value))
        return config_value_set_number(values, key, json_integer_value(value), origin, message);
    if (key->type == CONFIG_TYPE_BOOL && json_is_boolean(value))
        return config_value_set_bool(values, key, json_is_true(value));
    if (key->type == CONFIG_TYPE_LIST && json_is_array(value))
        return set_list(loading, values, key, value, origin);
    if (!config_type_is_number(key->type) && key->type != CONFIG_TYPE_BOOL &&
        key->type != CONFIG_TYPE_LIST && json_is_string(value))
        return config_value_set_text(values, key, json_string_value(value), origin, message);
    return config_fail_expected(key, origin, message);
}

static bool set_upstream(const struct loading *loading, json_t *object, const char *origin)
{
    struct config_upstream *upstream =
        config_upstreams_begin(loading->config, origin, loading->message);
    const char *name;
    json_t *value;

    if (upstream == NULL)
        return false;
    if (!json_is_object(object))
        return config_fail(loading->message,
                           "%s: must be an object such as {\"url\": \"https://huggingface.co\"}",
                           origin);
    json_object_foreach(object, name, value)
    {
        const struct config_key *key = config_upstream_key_find(name);
        const struct config_key *nearest = config_upstream_key_suggest(name);
        char place[ORIGIN_SIZE + 128];

        snprintf(place, sizeof(place), "%s.%.64s", origin, name);
        if (key == NULL && nearest != NULL)
            return config_fail(loading->message, "%s: unknown key; did you mean \"%s\"?", place,
                               nearest->name);
        if (key == NULL)
            return config_fail(loading->message, "%s: unknown key", place);
        if (!set_value(loading, upstream, key, place, value))
            return false;
    }
    return config_upstreams_end(loading->config, origin, loading->message);
}

static bool set_upstreams(const struct loading *loading, const json_t *list, const char *origin)
{
    size_t index;
    json_t *object;

    config_upstreams_reset(loading->config);
    json_array_foreach(list, index, object)
    {
        char place[ORIGIN_SIZE + 32];

        snprintf(place, sizeof(place), "%s[%zu]", origin, index);
        if (!set_upstream(loading, object, place))
            return false;
    }
    return true;
}

static bool set_from_json(const struct loading *loading, const struct config_key *key,
                          const char *where, const json_t *value)
{
    char origin[ORIGIN_SIZE];

    snprintf(origin, sizeof(origin), "%s: %s", where, key->name);
    if (key->type != CONFIG_TYPE_UPSTREAMS)
        return set_value(loading, loading->config, key, origin, value);
    return json_is_array(value) ? set_upstreams(loading, value, origin)
                                : config_fail_expected(key, origin, loading->message);
}

static bool set_key(const struct loading *loading, const char *group, const char *name,
                    const json_t *value)
{
    const struct place place = place_of(loading, group, name);
    char path[NAME_SIZE];
    const struct config_key *key;

    snprintf(path, sizeof(path), "%s%s%s", group != NULL ? group : "", group != NULL ? "." : "",
             name);
    key = config_key_find(path);
    /* A top-level name that contains a dot must not pass for a key of a group. */
    if (key == NULL || strchr(name, '.') != NULL)
        return fail_unknown(loading, place.text, path);
    return set_from_json(loading, key, place.text, value);
}

/* The key that false for a whole group turns off; NULL if there is none. */
static const struct config_key *switch_of(const char *group)
{
    char name[NAME_SIZE];
    const struct config_key *key;

    snprintf(name, sizeof(name), "%s.path", group);
    key = config_key_find(name);
    return key != NULL && key->can_be_off ? key : NULL;
}

static bool set_group(const struct loading *loading, const char *group, json_t *object)
{
    const char *name;
    json_t *value;

    if (json_is_false(object) && switch_of(group) != NULL)
        return config_value_set_off(loading->config, switch_of(group));
    if (!json_is_object(object))
        return config_fail(loading->message, "%s: \"%s\" must be an object of keys",
                           place_of(loading, NULL, group).text, group);
    json_object_foreach(object, name, value)
    {
        if (!set_key(loading, group, name, value))
            return false;
    }
    return true;
}

static bool set_document(const struct loading *loading, json_t *document)
{
    const char *name;
    json_t *value;

    if (!json_is_object(document))
        return config_fail(loading->message, "%s: must be a JSON object of keys", loading->path);
    json_object_foreach(document, name, value)
    {
        bool set = config_group_exists(name) ? set_group(loading, name, value)
                                             : set_key(loading, NULL, name, value);

        if (!set)
            return false;
    }
    return true;
}

bool config_load_file(struct config *config, const char *path, struct config_message *message)
{
    struct config loaded = *config;
    struct loading loading = {.config = &loaded, .path = path, .message = message};
    json_t *document = NULL;
    char *bytes = NULL;
    size_t length = 0;
    bool done = false;

    if (!read_file(path, &bytes, &length, message))
        return false;
    loading.text = bytes;
    loading.length = length;
    document = parse_json(&loading, bytes, length);
    if (document == NULL || !set_document(&loading, document))
        goto out;
    *config = loaded;
    done = true;
out:
    json_decref(document);
    free(bytes);
    return done;
}

/* --- printing --- */

static json_t *json_of_list(const char *list)
{
    json_t *words = json_array();
    const char *word;
    size_t length;

    while ((word = config_list_next(&list, &length)) != NULL)
        if (json_array_append_new(words, json_stringn(word, length)) != 0) {
            json_decref(words);
            return NULL;
        }
    return words;
}

static json_t *json_of_value(const void *values, const struct config_key *key);

static json_t *json_of_upstreams(const struct config *config)
{
    json_t *list = json_array();
    bool done = list != NULL;

    for (unsigned n = 0; done && n < config->upstream_count; n++) {
        json_t *object = json_object();

        for (size_t i = 0; object != NULL && i < config_upstream_keys_count; i++)
            done = json_object_set_new(
                       object, config_upstream_keys[i].name,
                       json_of_value(&config->upstreams[n], &config_upstream_keys[i])) == 0 &&
                   done;
        done = json_array_append_new(list, object) == 0 && done;
    }
    if (done)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *json_of_value(const void *values, const struct config_key *key)
{
    const char *text;

    if (key->type == CONFIG_TYPE_UPSTREAMS)
        return json_of_upstreams(values);
    if (config_type_is_number(key->type)) {
        int64_t number = config_value_number(values, key);

        return key->nullable && number == key->number ? json_null() : json_integer(number);
    }
    if (key->type == CONFIG_TYPE_BOOL)
        return json_boolean(config_value_bool(values, key));
    text = config_value_text(values, key);
    if (key->type == CONFIG_TYPE_LIST)
        return json_of_list(text != NULL ? text : "");
    if (text == NULL && key->can_be_off)
        return json_false();
    return text != NULL ? json_string(text) : json_null();
}

static bool put_value(json_t *document, const struct config *config, const struct config_key *key)
{
    const char *dot = strchr(key->name, '.');
    char group[NAME_SIZE];
    json_t *object = document;

    if (dot != NULL) {
        snprintf(group, sizeof(group), "%.*s", (int)(dot - key->name), key->name);
        object = json_object_get(document, group);
        if (object == NULL) {
            object = json_object();
            if (json_object_set_new(document, group, object) != 0)
                return false;
        }
    }
    return json_object_set_new(object, dot != NULL ? dot + 1 : key->name,
                               json_of_value(config, key)) == 0;
}

bool config_print(const struct config *config, FILE *stream)
{
    json_t *document = json_object();
    bool done = document != NULL;

    for (size_t i = 0; done && i < config_keys_count; i++)
        done = put_value(document, config, &config_keys[i]);
    done = done && json_dumpf(document, stream, JSON_INDENT(2)) == 0 && fputc('\n', stream) != EOF;
    json_decref(document);
    return done;
}
