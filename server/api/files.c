/* Stored files as they are, those that cannot be read as models and data shards too: for tools that
 * read files, and for whoever wants to look at a broken one. What the catalog does not know is not
 * there. */
#include "api/files.h"

#include <string.h>

#include "catalog/catalog.h"
#include "http/exchange/problem.h"

#define TAG_SUFFIX_SIZE 8

enum outcome files_get(struct request *request)
{
    struct generation *generation;
    char etag[GENERATION_ETAG_SIZE + TAG_SUFFIX_SIZE];
    struct representation *reply;

    switch (catalog_find_path(request->server->catalog, request->names[0], request_waiter(request),
                              &generation)) {
    case CATALOG_PENDING:
        return OUTCOME_WAITING;
    case CATALOG_NOT_FOUND:
        return problem_reply(request, PROBLEM_NOT_FOUND, "there is no stored file at this path");
    case CATALOG_FOUND:
        break;
    }
    request->generation = generation;
    request->is_unwritten = generation_is_unwritten;
    request_hold(request, generation, generation_release);
    if (generation->source == NULL)
        return problem_reply_error(request, &generation->error);
    generation_etag(generation, "file", etag, sizeof(etag));
    reply = &request->reply;
    reply->etag = request_print(request, "%s", etag);
    reply->last_modified = generation_modified(generation);
    reply->cache_control = "no-cache";
    reply->media_type = "application/octet-stream";
    reply->ranges = true;
    if (atomic_load(&generation->has_file_sha256)) {
        reply->has_sha256 = true;
        memcpy(reply->sha256, generation->file_sha256, sizeof(reply->sha256));
    }
    representation_source(reply, generation->source, 0, zt_source_size(generation->source));
    return OUTCOME_READY;
}
