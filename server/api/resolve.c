/* Names in a path, looked up: what is not there, or cannot be read, is said here once for all
 * handlers. */
#include "api/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "zt/utf8.h"

enum { NAME_MODEL, NAME_OBJECT, NAME_COMPONENT };

/* Names in details are cut: they may be as long as a URL. */
#define SHOWN_NAME_BYTES 256

static int shown(struct zt_text name)
{
    return (int)(name.length < SHOWN_NAME_BYTES ? name.length : SHOWN_NAME_BYTES);
}

enum problem problem_of_unreadable(const struct generation *generation)
{
    switch (generation->error.status) {
    case ZT_NO_MEMORY:
        return PROBLEM_INTERNAL;
    case ZT_DATA_SHARD:
        return PROBLEM_MODEL_NOT_FOUND;
    default:
        return PROBLEM_INVALID_MODEL;
    }
}

static bool refuse_unreadable(struct request *request)
{
    const struct generation *generation = request->generation;

    if (generation->model != NULL)
        return false;
    problem_reply_error_as(request, problem_of_unreadable(generation), &generation->error);
    return true;
}

bool model_resolve(struct request *request, enum outcome *out_outcome)
{
    struct zt_text name = request->names[NAME_MODEL];
    struct generation *generation;

    *out_outcome = OUTCOME_READY;
    if (request->generation != NULL)
        return true;
    if (!model_name_is_valid(name)) {
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "a model's name is parts of letters, digits, '.', '_' and '-' joined by '/' "
                      "(as %%2F), at most %d bytes",
                      MODEL_NAME_MAX);
        return false;
    }
    switch (catalog_find(request->server->catalog, name, request_waiter(request), &generation)) {
    case CATALOG_PENDING:
        *out_outcome = OUTCOME_WAITING;
        return false;
    case CATALOG_NOT_FOUND:
        problem_reply(request, PROBLEM_MODEL_NOT_FOUND, "there is no model named %.*s", shown(name),
                      name.bytes);
        return false;
    case CATALOG_FOUND:
        break;
    }
    request->generation = generation;
    request->is_unwritten = generation_is_unwritten;
    request_hold(request, generation, generation_release);
    return !refuse_unreadable(request);
}

const struct zt_object *object_resolve(struct request *request)
{
    struct zt_text name = request->names[NAME_OBJECT];
    const struct zt_object *object = zt_model_find(request->generation->model, name);

    if (object == NULL) {
        problem_reply(request, PROBLEM_OBJECT_NOT_FOUND, "the model has no object named %.*s",
                      shown(name), name.bytes);
    }
    return object;
}

const struct zt_component *component_resolve(struct request *request,
                                             const struct zt_object *object)
{
    struct zt_text name = request->names[NAME_COMPONENT];
    const struct zt_component *component = zt_object_find(request->generation->model, object, name);

    if (component == NULL) {
        problem_reply(request, PROBLEM_COMPONENT_NOT_FOUND,
                      "the object has no component named %.*s", shown(name), name.bytes);
    }
    return component;
}

static bool text_is_either(struct zt_text text, const char *first, const char *second)
{
    const char *const words[] = {first, second};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == text.length && memcmp(words[i], text.bytes, text.length) == 0)
            return true;
    return false;
}

bool query_prefix(struct request *request, struct zt_text *out_prefix)
{
    *out_prefix = (struct zt_text){"", 0};
    if (!request_query(request, "prefix", 0, out_prefix) ||
        zt_utf8_valid(out_prefix->bytes, out_prefix->length))
        return true;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "prefix is not UTF-8");
    return false;
}

bool query_switch(struct request *request, const char *name, bool *out_value)
{
    struct zt_text value;

    *out_value = false;
    if (!request_query(request, name, 0, &value))
        return true;
    if (value.length == 0 || text_is_either(value, "1", "true")) {
        *out_value = true;
        return true;
    }
    if (!text_is_either(value, "0", "false")) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s is a switch: 1 or 0", name);
        return false;
    }
    return true;
}

static void release_json(void *thing)
{
    json_free(thing);
}

struct json *request_json(struct request *request, bool pretty)
{
    struct json *json = request_allocate(request, sizeof(*json));

    if (json == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    json_init(json, pretty);
    request_hold(request, json, release_json);
    return json;
}

enum outcome problem_reply_too_long(struct request *request)
{
    return problem_reply(request, PROBLEM_NOT_REPRESENTABLE,
                         "as JSON the manifest is many times as long as in the file; select "
                         "objects by match or prefix");
}

enum outcome reply_written(struct request *request, struct json *json)
{
    if (json->too_long)
        return problem_reply_too_long(request);
    if (json->failed)
        return problem_reply(request, PROBLEM_INTERNAL, "the answer does not fit in memory");
    request->reply.status = 200;
    request->reply.media_type = "application/json";
    representation_memory(&request->reply, json->text, json->length);
    return OUTCOME_READY;
}
