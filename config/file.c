/* The configuration file and its printed form: JSON by jansson, which no other file of config
 * includes.
 *
 * Keys are nested objects of one level: {"listen": "…", "upload": {"max_bytes": 1}}. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/schema.h"
#include "config/value.h"

/* A configuration is a page; what is larger was not meant to be one. */
#define FILE_MAX_BYTES ((size_t)1 << 20)
/* A path of keys in a message; longer ones are cut. */
#define PATH_SIZE 256
/* As deep as a file that names known keys can be, and one more. */
#define DEPTH_MAX 4

struct loading {
    struct config *config;
    const char *path; /* of the file */
    struct config_message *message;
};

/* Reads the whole file into *out_bytes, to be freed. */
static bool read_file(const char *path, char **out_bytes, size_t *out_length,
                      struct config_message *message)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t length;
    bool done = false;

    if (file == NULL)
        return config_fail(message, "%s: %s", path, strerror(errno));
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

/* A string of the text that ends behind its closing quote, and where its content lies. */
struct json_span {
    size_t start;
    size_t end;
};

static size_t skip_string(const char *text, size_t length, size_t at, struct json_span *out_content)
{
    out_content->start = ++at;
    while (at < length && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    out_content->end = at < length ? at : length;
    return at + 1;
}

/* Writes the path of the key whose last quote is text[length - 1]: the key itself behind the last
 * string seen in each object that is still open there. jansson has checked the text so far. */
static void path_of_key(const char *text, size_t length, char out_path[PATH_SIZE])
{
    struct json_span keys[DEPTH_MAX] = {{0, 0}};
    size_t depth = 0;
    size_t used = 0;

    for (size_t at = 0; at < length;) {
        struct json_span content;

        if (text[at] == '"') {
            at = skip_string(text, length, at, &content);
            if (depth > 0 && depth <= DEPTH_MAX)
                keys[depth - 1] = content;
            continue;
        }
        depth += text[at] == '{';
        depth -= text[at] == '}' && depth > 0;
        at++;
    }
    out_path[0] = '\0';
    for (size_t i = 0; i < depth && i < DEPTH_MAX && used < PATH_SIZE; i++)
        used += (size_t)snprintf(out_path + used, PATH_SIZE - used, "%s%.*s", i == 0 ? "" : ".",
                                 (int)(keys[i].end - keys[i].start), text + keys[i].start);
}

static json_t *parse_json(const struct loading *loading, const char *bytes, size_t length)
{
    json_error_t error;
    json_t *document = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    char path[PATH_SIZE];

    if (document != NULL)
        return document;
    if (json_error_code(&error) == json_error_duplicate_key && error.position > 0) {
        path_of_key(bytes, (size_t)error.position, path);
        config_say(loading->message, "%s: key \"%s\" stands there twice (line %d)", loading->path,
                   path, error.line);
        return NULL;
    }
    config_say(loading->message, "%s: not valid JSON: %s (line %d, column %d)", loading->path,
               error.text, error.line, error.column);
    return NULL;
}

static bool refuse_unknown(const struct loading *loading, const char *path)
{
    const struct config_key *nearest = config_key_suggest(path);

    if (config_key_find(path) != NULL)
        return config_fail(loading->message,
                           "%s: unknown key \"%s\" at the top; groups are nested objects",
                           loading->path, path);
    if (nearest != NULL)
        return config_fail(loading->message, "%s: unknown key \"%s\"; did you mean \"%s\"?",
                           loading->path, path, nearest->name);
    return config_fail(loading->message, "%s: unknown key \"%s\"", loading->path, path);
}

static bool set_from_json(const struct loading *loading, const struct config_key *key,
                          const json_t *value)
{
    char origin[CONFIG_TEXT_SIZE + PATH_SIZE];

    snprintf(origin, sizeof(origin), "%s: %s", loading->path, key->name);
    if (key->nullable && json_is_null(value)) {
        config_value_reset(loading->config, key);
        return true;
    }
    if (config_type_is_number(key->type) && json_is_integer(value))
        return config_value_set_number(loading->config, key, json_integer_value(value), origin,
                                       loading->message);
    if (key->type == CONFIG_TYPE_BOOL && json_is_boolean(value))
        return config_value_set_bool(loading->config, key, json_is_true(value));
    if (!config_type_is_number(key->type) && key->type != CONFIG_TYPE_BOOL && json_is_string(value))
        return config_value_set_text(loading->config, key, json_string_value(value), origin,
                                     loading->message);
    return config_value_refuse(key, origin, loading->message);
}

static bool set_key(const struct loading *loading, const char *group, const char *name,
                    const json_t *value)
{
    char path[PATH_SIZE];
    const struct config_key *key;

    snprintf(path, sizeof(path), "%s%s%s", group != NULL ? group : "", group != NULL ? "." : "",
             name);
    key = config_key_find(path);
    /* A top-level name with a dot in it would otherwise pass for a key of a group. */
    if (key == NULL || strchr(name, '.') != NULL)
        return refuse_unknown(loading, path);
    return set_from_json(loading, key, value);
}

static bool set_group(const struct loading *loading, const char *group, json_t *object)
{
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return config_fail(loading->message, "%s: \"%s\" must be an object of keys", loading->path,
                           group);
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

static json_t *json_of_value(const struct config *config, const struct config_key *key)
{
    const char *text;

    if (config_type_is_number(key->type)) {
        int64_t number = config_value_number(config, key);

        return key->nullable && number == key->number ? json_null() : json_integer(number);
    }
    if (key->type == CONFIG_TYPE_BOOL)
        return json_boolean(config_value_bool(config, key));
    text = config_value_text(config, key);
    return text != NULL ? json_string(text) : json_null();
}

static bool put_value(json_t *document, const struct config *config, const struct config_key *key)
{
    const char *dot = strchr(key->name, '.');
    char group[PATH_SIZE];
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
