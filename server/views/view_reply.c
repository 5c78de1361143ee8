/* Exports make the bytes of parts; the index is written as JSON. */
#include "views/view_reply.h"

#include <assert.h>

#include "api/json_reply.h"
#include "catalog/catalog.h"
#include "http/exchange/problem.h"

enum view_model view_find_model(struct request *request, const struct model_view *view)
{
    struct generation *generation;

    assert(request->generation == NULL);
    switch (catalog_find_path(request->server->catalog, zt_text_from(view->path),
                              request_waiter(request), &generation)) {
    case CATALOG_PENDING:
        return VIEW_MODEL_PENDING;
    case CATALOG_UNAVAILABLE:
        return VIEW_MODEL_UNAVAILABLE;
    case CATALOG_NOT_FOUND:
        return VIEW_MODEL_STALE;
    case CATALOG_FOUND:
        break;
    }
    if (!model_view_is_from(view, generation)) {
        generation_release(generation);
        return VIEW_MODEL_STALE;
    }
    request->generation = generation;
    request->is_unwritten = generation_is_unwritten;
    request_hold(request, generation, generation_release);
    return VIEW_MODEL_FOUND;
}

void view_reply_write_index(const struct request *request, const struct view_reply *reply)
{
    assert(reply->part == VIEW_INDEX && reply->json != NULL);
    model_view_write_index(reply->view, request->generation, reply->json);
}

static enum outcome reply_index(struct request *request, struct view_reply *index)
{
    struct representation *reply = &request->reply;
    struct zt_error error;

    assert(index->write_index != NULL && index->view->part_count > 1);
    if (index->json == NULL) {
        index->json = json_reply_new(request, false);
        return index->json != NULL ? request_work(request, index->write_index) : OUTCOME_READY;
    }
    if (index->json->failed)
        return problem_reply_no_memory(request);
    /* Other bytes of the same identity, which the view does not know. */
    if (index->json->length != index->view->index_length) {
        zt_fail(&error, ZT_STALE, NULL, ZT_NO_OFFSET, "%s is not the file that was listed",
                request->generation->path);
        return problem_reply_error_as(request, PROBLEM_STORE_UNAVAILABLE, &error);
    }
    representation_memory(reply, index->json->text, index->json->length);
    reply->media_type = "application/json";
    reply->ranges = true;
    reply->last_modified = generation_modified(request->generation);
    return OUTCOME_READY;
}

enum outcome view_reply(struct request *request, struct view_reply *reply)
{
    assert(request->generation != NULL);
    if (reply->part == VIEW_INDEX)
        return reply_index(request, reply);
    assert(reply->part < reply->view->part_count);
    if (!reply->is_export) {
        reply->export.query = model_view_query(reply->view, reply->part);
        reply->is_export = true;
    }
    return export_reply(request, &reply->export);
}
