/* What PUT refuses before a byte of the body, in the order of the contract; each true when it
 * replied. */
#include <string.h>
#include <time.h>

#include "upload/shared/write_checks.h"
#include "upload/whole/upload.h"
#include "upload/whole/upload_state.h"

static bool refuse_request(struct request *request)
{
    if (refuse_read_only(request) || refuse_name(request, request->names[0]))
        return true;
    if (request_header(request, "Content-Range") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "a model is put as a whole: no Content-Range");
        return true;
    }
    return refuse_coding(request);
}

static bool refuse_digests(struct request *request, struct upload *upload)
{
    const char *content = request_header(request, "Content-Digest");
    const char *repr = request_header(request, "Repr-Digest");

    if ((content == NULL || digest_field_parse(content, &upload->content_digest)) &&
        (repr == NULL || digest_field_parse(repr, &upload->repr_digest)))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "Content-Digest or Repr-Digest is malformed");
    return true;
}

static bool refuse_length(struct request *request)
{
    uint64_t length = request_body_length(request);

    if (length == 0 && request_header(request, "Content-Length") == NULL) {
        problem_reply(request, PROBLEM_LENGTH_REQUIRED,
                      "a body is wanted: send its Content-Length, or send it chunked");
        return true;
    }
    return refuse_large(request, length);
}

/* Counts the body in. */
static bool refuse_crowd(struct request *request, struct upload *upload)
{
    struct registry_entry *entry = &upload->entry;
    unsigned limit = (unsigned)request->server->config->upload.open_per_client;

    entry->kind = UPLOAD_KIND_FILE;
    registry_make_id(entry->id);
    strcpy(entry->model, upload->name);
    request_client(request, entry->client);
    entry->created = time(NULL);
    atomic_init(&entry->active, entry->created);
    upload->is_registered = registry_add(request->server->registry, entry, limit);
    if (!upload->is_registered)
        reply_crowded(request, limit, "upload.open_per_client");
    return !upload->is_registered;
}

static bool refuse_memory(struct request *request, struct upload *upload)
{
    if (upload_hash_init(&upload->hash,
                         upload->content_digest.has_sha512 || upload->repr_digest.has_sha512))
        return false;
    problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
    return true;
}

void model_put_begin(struct request *request)
{
    struct upload *upload = refuse_request(request) ? NULL : upload_new(request);
    struct zt_error error;
    struct store *store;

    if (upload == NULL || refuse_digests(request, upload) || refuse_memory(request, upload) ||
        refuse_preconditions(request, request->names[0], &upload->publication.preconditions) ||
        refuse_length(request) || refuse_crowd(request, upload))
        return;
    store = request->server->store;
    if (store->ops->create(store, request_body_length(request), &upload->publication.stored,
                           &error) != ZT_OK)
        reply_store_failure(request, &error);
}
