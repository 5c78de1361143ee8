/* The part of jansson that reading needs. */
#include "input/json_read.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Every number up to here is exact as a double. */
#define NUMBER_MAX ((int64_t)1 << 53)

static json_t *read_value(struct zt_text text, json_type type, const char *otherwise,
                          struct json_mistake *out_mistake)
{
    json_error_t error = {.line = 0};
    json_t *value = json_loadb(text.bytes, text.length, JSON_REJECT_DUPLICATES, &error);

    if (value != NULL && json_typeof(value) == type)
        return value;
    if (out_mistake != NULL) {
        out_mistake->line = value == NULL ? error.line : 0;
        out_mistake->column = error.column;
        snprintf(out_mistake->why, sizeof(out_mistake->why), "%s",
                 value == NULL ? error.text : otherwise);
    }
    json_decref(value);
    return NULL;
}

struct json_t *json_object_read(struct zt_text text, struct json_mistake *out_mistake)
{
    return read_value(text, JSON_OBJECT, "not an object", out_mistake);
}

struct json_t *json_list_read(struct zt_text text, struct json_mistake *out_mistake)
{
    return read_value(text, JSON_ARRAY, "not a list", out_mistake);
}

void json_object_free(struct json_t *object)
{
    json_decref(object);
}

bool json_is_bounded(struct zt_text text, size_t commas, size_t brackets)
{
    bool is_string = false;

    for (size_t i = 0; i < text.length; i++) {
        const char byte = text.bytes[i];

        if (byte == '"')
            is_string = !is_string;
        else if (is_string && byte == '\\')
            i++;
        else if (!is_string && byte == ',' && commas-- == 0)
            return false;
        else if (!is_string && (byte == '[' || byte == '{') && brackets-- == 0)
            return false;
    }
    return true;
}

const char *json_member_other(const struct json_t *object, const char *const *known)
{
    for (void *at = json_object_iter((json_t *)(uintptr_t)object); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
        const char *name = json_object_iter_key(at);
        size_t i = 0;

        while (known[i] != NULL && strcmp(known[i], name) != 0)
            i++;
        if (known[i] == NULL)
            return name;
    }
    return NULL;
}

static bool text_of(const json_t *value, struct zt_text *out_text)
{
    if (!json_is_string(value))
        return false;
    *out_text = (struct zt_text){json_string_value(value), json_string_length(value)};
    return true;
}

enum json_member json_member_text(const struct json_t *object, const char *name,
                                  struct zt_text *out_text)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return JSON_ABSENT;
    return text_of(value, out_text) ? JSON_FOUND : JSON_OTHER;
}

enum json_member json_member_number(const struct json_t *object, const char *name,
                                    int64_t *out_number)
{
    const json_t *value = json_object_get(object, name);
    double number;

    if (value == NULL)
        return JSON_ABSENT;
    if (!json_is_number(value))
        return JSON_OTHER;
    number = json_number_value(value);
    if (number > (double)NUMBER_MAX)
        *out_number = NUMBER_MAX;
    else if (number < (double)-NUMBER_MAX)
        *out_number = -NUMBER_MAX;
    else
        *out_number = (int64_t)number;
    return JSON_FOUND;
}

static bool whole_of(const json_t *value, uint64_t *out_number)
{
    double number;

    if (json_is_integer(value)) {
        if (json_integer_value(value) < 0)
            return false;
        *out_number = (uint64_t)json_integer_value(value);
        return true;
    }
    if (!json_is_real(value))
        return false;
    number = json_real_value(value);
    if (!(number >= 0 && number <= (double)NUMBER_MAX) || number != (double)(uint64_t)number)
        return false;
    *out_number = (uint64_t)number;
    return true;
}

enum json_member json_member_whole(const struct json_t *object, const char *name,
                                   uint64_t *out_number)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return JSON_ABSENT;
    return whole_of(value, out_number) ? JSON_FOUND : JSON_OTHER;
}

enum json_member json_member_integer(const struct json_t *object, const char *name,
                                     int64_t *out_number)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return JSON_ABSENT;
    if (!json_is_integer(value))
        return JSON_OTHER;
    *out_number = json_integer_value(value);
    return JSON_FOUND;
}

enum json_member json_member_real(const struct json_t *object, const char *name, double *out_number)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return JSON_ABSENT;
    if (!json_is_number(value))
        return JSON_OTHER;
    *out_number = json_number_value(value);
    return JSON_FOUND;
}

bool json_member_is_true(const struct json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

bool json_member_exists(const struct json_t *object, const char *name)
{
    return json_object_get(object, name) != NULL;
}

bool json_member_is_null(const struct json_t *object, const char *name)
{
    return json_is_null(json_object_get(object, name));
}

const struct json_t *json_member_object(const struct json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_object(value) ? value : NULL;
}

const struct json_t *json_member_list(const struct json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_array(value) ? value : NULL;
}

size_t json_list_length(const struct json_t *list)
{
    return json_array_size(list);
}

const struct json_t *json_list_object(const struct json_t *list, size_t index)
{
    const json_t *value = json_array_get(list, index);

    return json_is_object(value) ? value : NULL;
}

bool json_list_text(const struct json_t *list, size_t index, struct zt_text *out_text)
{
    return text_of(json_array_get(list, index), out_text);
}

bool json_list_whole(const struct json_t *list, size_t index, uint64_t *out_number)
{
    return whole_of(json_array_get(list, index), out_number);
}

bool json_list_integer(const struct json_t *list, size_t index, int64_t *out_number)
{
    const json_t *value = json_array_get(list, index);

    if (!json_is_integer(value))
        return false;
    *out_number = json_integer_value(value);
    return true;
}

char *json_object_text(const struct json_t *object)
{
    return json_dumps(object, JSON_INDENT(2));
}
