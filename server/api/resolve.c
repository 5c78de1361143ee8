/* Looks up the names of a path, and replies for all handlers when one is missing or unreadable. */
#include "api/resolve.h"

#include <assert.h>

#include "catalog/catalog.h"

enum { NAME_MODEL, NAME_OBJECT, NAME_COMPONENT };

/* Names may be as long as a URL; details show the first bytes. */
#define SHOWN_NAME_BYTES 256

static int shown(struct zt_text name)
{
    return (int)(name.length < SHOWN_NAME_BYTES ? name.length : SHOWN_NAME_BYTES);
}

enum problem problem_of_unreadable(const struct generation *generation)
{
    if (generation_is_foreign(generation))
        return PROBLEM_MODEL_NOT_FOUND;
    switch (generation->error->status) {
    case ZT_NO_MEMORY:
        return PROBLEM_INTERNAL;
    case ZT_DATA_SHARD:
        return PROBLEM_MODEL_NOT_FOUND;
    default:
        return PROBLEM_INVALID_MODEL;
    }
}

/* Replies if the file could not be read as a model. */
static bool reply_if_unreadable(struct request *request)
{
    const struct generation *generation = request->generation;

    if (generation->model != NULL)
        return false;
    problem_reply_error_as(request, problem_of_unreadable(generation), generation->error);
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
                      "a model's name is UTF-8 without control characters, at most %d bytes of "
                      "parts that do not begin with '.', joined by '/' (as %%2F)",
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
    case CATALOG_UNAVAILABLE:
        problem_reply(request, PROBLEM_STORE_UNAVAILABLE, STORE_UNAVAILABLE_DETAIL);
        return false;
    case CATALOG_FOUND:
        break;
    }
    request->generation = generation;
    request->is_unwritten = generation_is_unwritten;
    request_hold(request, generation, generation_release);
    return !reply_if_unreadable(request);
}

const struct zt_object *object_resolve(struct request *request)
{
    struct zt_text name = request->names[NAME_OBJECT];
    const struct zt_model *model = request->generation->model;
    const struct zt_object *object;

    assert(model != NULL);
    object = zt_model_find(model, name);
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
    const struct zt_component *component;

    assert(object != NULL);
    component = zt_object_find(request->generation->model, object, name);
    if (component == NULL) {
        problem_reply(request, PROBLEM_COMPONENT_NOT_FOUND,
                      "the object has no component named %.*s", shown(name), name.bytes);
    }
    return component;
}
