/* Replies with an exported file, to any request that has a generation and a query. */
#ifndef API_EXPORT_REPLY_H
#define API_EXPORT_REPLY_H

#include "api/export_segments.h"
#include "http/exchange/request.h"

/* Raise this when the same query of the same file gives other bytes, so that ETags change. */
#define EXPORT_REVISION 1

/* The state of a request. */
struct export_view {
    struct export_query query;        /* set by the caller */
    struct export_plan *plan;         /* NULL at first */
    struct export_segments *segments; /* NULL at first */
};

/* Makes the selected part of request->generation the reply: bytes, length, ranges, ETag,
 * Last-Modified and media type. The handler returns the outcome. While it is OUTCOME_WAITING, the
 * handler is called again and calls this again. Once the reply is ready, request->context is the
 * view, and the handler is not called again; the caller may add fields and replace the ETag, unless
 * request->replied. */
enum outcome export_reply(struct request *request, struct export_view *view);

#endif
