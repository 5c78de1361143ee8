/* Replies with a file of a view. */
#ifndef VIEWS_VIEW_REPLY_H
#define VIEWS_VIEW_REPLY_H

#include "api/export_reply.h"
#include "views/model_view.h"

enum view_model {
    VIEW_MODEL_FOUND,   /* request->generation is the version from which the view was made */
    VIEW_MODEL_PENDING, /* call it again when the request is woken */
    VIEW_MODEL_STALE,   /* the model was replaced or removed */
    VIEW_MODEL_UNAVAILABLE
};

/* Finds the model of a view; the request holds it. */
enum view_model view_find_model(struct request *request, const struct model_view *view);

/* The state of a request. */
struct view_reply {
    const struct model_view *view; /* set by the caller, with the next two; it must be held */
    uint32_t part;
    void (*write_index)(struct request *request); /* calls view_reply_write_index */
    bool is_export;                               /* export.query is filled in */
    struct export_view export;
    struct json *json; /* the index; held by the request */
};

/* Makes a part, or the index, of the view of request->generation the reply: bytes, length, ranges,
 * Last-Modified and media type. The caller sets the ETag, unless request->replied. Call it again
 * after OUTCOME_WAITING. */
enum outcome view_reply(struct request *request, struct view_reply *reply);

/* On a worker. */
void view_reply_write_index(const struct request *request, const struct view_reply *reply);

#endif
