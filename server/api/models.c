/* The manifest of one model: the whole of it from the texts kept with the generation, one for each
 * coding; selections made and coded for the request. */
#include "api/models.h"

#include "api/resolve.h"
#include "api/selection.h"

/* More objects than this take longer to write than a loop should be held up. */
#define INLINE_OBJECTS 500
/* The same for attributes and names, of which few objects may have many. */
#define INLINE_MANIFEST_BYTES 65536
/* And for globs, which a set of longer ones goes through more slowly than names are written. */
#define INLINE_GLOB_BYTES 128

static void set_fields(struct request *request, const char *etag)
{
    struct representation *reply = &request->reply;

    reply->etag = etag;
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->media_type = "application/json";
    reply->ranges = true;
}

/* A 304 needs no text. */
static enum outcome step_manifest(struct request *request)
{
    const struct selection *selection = request->context;
    struct zt_text text;

    switch (manifest_ask(request->server->workers, request->generation, selection->reply.coding,
                         request_waiter(request), &text)) {
    case MANIFEST_PENDING:
        return OUTCOME_WAITING;
    case MANIFEST_TOO_LONG:
        return problem_reply_too_long(request);
    case MANIFEST_FAILED:
        return problem_reply(request, PROBLEM_INTERNAL,
                             "the manifest as JSON does not fit in memory");
    case MANIFEST_READY:
        break;
    }
    representation_memory(&request->reply, text.bytes, text.length);
    return OUTCOME_READY;
}

static enum outcome reply_whole(struct request *request, const struct selection *selection)
{
    const char *etag = coded_reply_etag(request, &selection->reply, request->generation->etag);

    request->reply.coding = coding_name(selection->reply.coding);
    set_fields(request, etag);
    representation_step(&request->reply, step_manifest);
    return OUTCOME_READY;
}

static bool is_long_work(const struct zt_model *model, const struct manifest_selection *selection)
{
    size_t glob_bytes = 0;

    for (size_t i = 0; i < selection->match_count; i++)
        glob_bytes += selection->matches[i].length;
    return model->object_count > INLINE_OBJECTS || model->manifest_length > INLINE_MANIFEST_BYTES ||
           glob_bytes > INLINE_GLOB_BYTES;
}

static void write_selection(struct request *request)
{
    struct selection *selection = request->context;
    const struct manifest_source source = selection_source(request->generation);

    manifest_write(selection->reply.json, request->generation->model, &source,
                   &selection->manifest);
}

static enum outcome reply_selection(struct request *request, struct selection *selection)
{
    if (!selection->written) {
        selection->written = true;
        selection->reply.json = request_json(request, selection->pretty);
        if (selection->reply.json == NULL)
            return OUTCOME_READY;
        if (is_long_work(request->generation->model, &selection->manifest))
            return request_work_long(request, write_selection);
        write_selection(request);
    }
    if (coded_reply_code(request, &selection->reply) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    reply_written(request, selection->reply.json);
    if (!selection->reply.json->failed)
        set_fields(request, selection_etag(request, selection, "model"));
    return OUTCOME_READY;
}

enum outcome model_get(struct request *request)
{
    enum outcome outcome;
    struct selection *selection;

    if (!model_resolve(request, &outcome))
        return outcome;
    selection = request->context != NULL ? request->context : selection_read(request);
    if (selection == NULL)
        return OUTCOME_READY;
    request->context = selection;
    return selection->is_whole ? reply_whole(request, selection)
                               : reply_selection(request, selection);
}
