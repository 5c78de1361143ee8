/* GET /files/{path}: sends a stored file of any kind, by its path below the root, for tools that
 * read files. */
#include <assert.h>
#include <string.h>

#include "api/file_access.h"
#include "api/handlers.h"
#include "api/stored_reply.h"
#include "catalog/generation.h"
#include "http/exchange/base_url.h"
#include "http/exchange/problem.h"
#include "http/revisions/revision.h"

/* "file" and NUL, with room. */
#define TAG_SUFFIX_SIZE 8

/* The location is relative, so that it is also correct if a proxy puts a prefix before the path.
 * "./" keeps a name with a colon from being a scheme. */
static enum outcome reply_to_folder(struct request *request, struct zt_text name)
{
    struct href href;

    href_init(&href);
    href_plain(&href, "./");
    href_segment(&href, name);
    href_plain(&href, "/");
    return reply_redirect(request, 308, &href);
}

static struct zt_text last_part(struct zt_text path)
{
    const char *slash = memrchr(path.bytes, '/', path.length);
    const size_t before = slash != NULL ? (size_t)(slash + 1 - path.bytes) : 0;

    return (struct zt_text){path.bytes + before, path.length - before};
}

static enum outcome reply_generation(struct request *request)
{
    const struct generation *generation = request->generation;
    char etag[GENERATION_ETAG_SIZE + TAG_SUFFIX_SIZE];

    generation_etag(generation, "file", etag, sizeof(etag));
    request->reply.etag = request_copy(request, etag, strlen(etag));
    return OUTCOME_READY;
}

static enum outcome reply_file(struct request *request)
{
    const struct stored_file *file = request->file;
    char etag[STORED_FILE_ETAG_SIZE];

    assert(file != NULL);
    stored_file_etag(file->path, &file->identity, etag);
    request->reply.etag = request_copy(request, etag, strlen(etag));
    request->reply.media_type = stored_media_type(request->names[0]);
    stored_reply_fields(request);
    return OUTCOME_READY;
}

/* Returns false if it has replied. */
static bool begin(struct request *request)
{
    struct file_search *search = request_new_context(request, sizeof(*search));

    if (search == NULL || !file_search_init(request, search, request->names[0]))
        return false;
    search->wants_folder = true;
    return true;
}

enum outcome files_get(struct request *request)
{
    enum outcome outcome;

    if (request->context == NULL) {
        if (!revision_resolve_path(request, REVISION_OF_FILE, &outcome))
            return outcome;
        if (!begin(request))
            return OUTCOME_READY;
    }
    switch (file_search_run(request)) {
    case FILE_FOUND_PENDING:
        return OUTCOME_WAITING;
    case FILE_FOUND_FAILED:
        return OUTCOME_READY;
    case FILE_FOUND_FOLDER:
        return request->revision.bytes != NULL
                   ? revision_redirect_to_folder(request, false)
                   : reply_to_folder(request, last_part(request->names[0]));
    case FILE_FOUND_NONE:
        return problem_reply(request, PROBLEM_NOT_FOUND, "there is no stored file at this path");
    case FILE_FOUND:
        break;
    }
    return request->file != NULL ? reply_file(request) : reply_generation(request);
}

enum outcome files_redirect(struct request *request)
{
    return reply_to_folder(request, zt_text_from("files"));
}
