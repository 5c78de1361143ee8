/* Looks up the names of a path, and replies for all handlers when one is missing or unreadable. */
#include "api/resolve.h"

#include <assert.h>
#include <string.h>

#include "catalog/catalog.h"
#include "http/fields/uri.h"
#include "http/revisions/revision.h"
#include "store/store.h"

enum { NAME_MODEL, NAME_OBJECT, NAME_COMPONENT };

/* Names may be as long as a URL; messages show only the first bytes. */
#define SHOWN_NAME_BYTES 256

static int shown(struct zt_text name)
{
    return (int)(name.length < SHOWN_NAME_BYTES ? name.length : SHOWN_NAME_BYTES);
}

enum problem problem_of_unreadable(const struct generation *generation)
{
    if (generation_is_not_a_model(generation))
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

/* Replies with a problem if the file could not be read as a model. */
static bool reply_if_unreadable(struct request *request)
{
    const struct generation *generation = request->generation;

    if (generation->model != NULL)
        return false;
    problem_reply_error_as(request, problem_of_unreadable(generation), generation->error);
    return true;
}

/* Users of a mirror often take the name of a repository for the name of a model. */
static const char *explain_absence(const struct store *store)
{
    return store_mirrors(store) ? ", here or upstream; models have the names of files, such as "
                                  "ORG/MODEL/model for model.safetensors"
                                : "";
}

/* Returns true if it has replied. */
static bool refuse_name(struct request *request, struct zt_text name)
{
    if (model_name_is_valid(name))
        return false;
    problem_reply(request, PROBLEM_INVALID_NAME,
                  "a model's name must be UTF-8 without control characters, at most %d bytes, "
                  "in parts joined by '/' (as %%2F) that do not begin with '.'",
                  MODEL_NAME_MAX);
    return true;
}

bool model_resolve(struct request *request, enum outcome *out_outcome)
{
    struct generation *generation;
    struct zt_text name;

    *out_outcome = OUTCOME_READY;
    if (request->generation != NULL)
        return true;
    if (refuse_name(request, request->names[NAME_MODEL]) ||
        !revision_resolve_model(request, out_outcome))
        return false;
    name = request->names[NAME_MODEL];
    if (refuse_name(request, name))
        return false;
    switch (catalog_find(request->server->catalog, name, request_waiter(request), &generation)) {
    case CATALOG_PENDING:
        *out_outcome = OUTCOME_WAITING;
        return false;
    case CATALOG_NOT_FOUND:
        problem_reply(request, PROBLEM_MODEL_NOT_FOUND, "there is no model named %.*s%s",
                      shown(name), name.bytes, explain_absence(request->server->store));
        return false;
    case CATALOG_UNAVAILABLE:
        problem_reply_unavailable(request, name);
        return false;
    case CATALOG_FOUND:
        break;
    }
    request->generation = generation;
    request->is_unwritten = generation_is_unwritten;
    request_hold(request, generation, generation_release);
    return !reply_if_unreadable(request);
}

/* Returns true if the name is empty because the path has an extra slash at its end. */
static bool ends_in_one_slash(const struct request *request)
{
    struct zt_text path;

    return target_path(request_target(request), &path) == TARGET_PATH &&
           zt_text_ends_with(path, zt_text_from("/")) &&
           !zt_text_ends_with(path, zt_text_from("//"));
}

/* Replies that the model has no such object or component. An empty name was probably a mistake. */
static void reply_not_found(struct request *request, enum problem problem, const char *what,
                            struct zt_text name)
{
    if (name.length == 0 && ends_in_one_slash(request))
        problem_reply(request, PROBLEM_NOT_FOUND, "there is no resource at this path");
    else if (name.length == 0)
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "the path contains an empty segment, and %s with an empty name", what);
    else if (memchr(name.bytes, '\0', name.length) != NULL)
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "a name in the path contains U+0000, and %s of that name", what);
    else
        problem_reply(request, problem, "%s named %.*s", what, shown(name), name.bytes);
}

const struct zt_object *object_resolve(struct request *request)
{
    struct zt_text name = request->names[NAME_OBJECT];
    const struct zt_model *model = request->generation->model;
    const struct zt_object *object;

    assert(model != NULL);
    object = zt_model_find(model, name);
    if (object == NULL)
        reply_not_found(request, PROBLEM_OBJECT_NOT_FOUND, "the model has no object", name);
    return object;
}

const struct zt_component *component_resolve(struct request *request,
                                             const struct zt_object *object)
{
    struct zt_text name = request->names[NAME_COMPONENT];
    const struct zt_component *component;

    assert(object != NULL);
    component = zt_object_find(request->generation->model, object, name);
    if (component == NULL)
        reply_not_found(request, PROBLEM_COMPONENT_NOT_FOUND, "the object has no component", name);
    return component;
}
