/* One object as JSON, in the shape of its entry in the manifest. */
#include "api/objects.h"

#include <stdio.h>

#include "api/resolve.h"
#include "api/selection.h"

/* An object with more components, or more bytes of attributes, is written by a worker. */
#define INLINE_COMPONENTS      500
#define INLINE_ATTRIBUTE_BYTES 65536

static void write_object(struct request *request)
{
    struct selection *selection = request->context;
    const struct zt_model *model = request->generation->model;
    const struct manifest_source source = selection_source(request->generation);
    const struct zt_object *object = zt_model_find(model, request->names[1]);

    manifest_write_object(selection->reply.json, model, object, &source,
                          selection->manifest.fields);
}

static void set_fields(struct request *request, const struct selection *selection,
                       const struct zt_object *object)
{
    struct representation *reply = &request->reply;
    char what[32];

    snprintf(what, sizeof(what), "object %td", object - request->generation->model->objects);
    reply->etag = selection_etag(request, selection, what);
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->ranges = true;
}

/* NULL: replied. */
static struct selection *begin(struct request *request)
{
    struct selection *selection = selection_read(request);

    if (selection != NULL)
        selection->reply.json = request_json(request, selection->pretty);
    return selection != NULL && selection->reply.json != NULL ? selection : NULL;
}

enum outcome object_get(struct request *request)
{
    enum outcome outcome;
    const struct zt_object *object;
    struct selection *selection;

    if (!model_resolve(request, &outcome))
        return outcome;
    object = object_resolve(request);
    if (object == NULL)
        return OUTCOME_READY;
    selection = request->context;
    if (selection == NULL) {
        selection = begin(request);
        request->context = selection;
        if (selection == NULL)
            return OUTCOME_READY;
        if (object->component_count > INLINE_COMPONENTS ||
            object->attributes_length > INLINE_ATTRIBUTE_BYTES)
            return request_work_long(request, write_object);
        write_object(request);
    }
    if (coded_reply_code(request, &selection->reply) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    reply_written(request, selection->reply.json);
    if (!selection->reply.json->failed)
        set_fields(request, selection, object);
    return OUTCOME_READY;
}
