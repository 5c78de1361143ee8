/* Refusals before the body, and its place in the registry. */
#include "hub/write/lfs_body.h"

#include <string.h>
#include <time.h>

#include "base/metrics.h"
#include "base/server.h"
#include "http/exchange/problem.h"
#include "upload/shared/write_checks.h"

bool lfs_body_refuse_form(struct request *request)
{
    if (request_header(request, "Content-Range") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "an object is sent as a whole: Content-Range is not supported");
        return true;
    }
    return write_refuse_coding(request) || write_refuse_absent_body(request);
}

bool lfs_body_refuse_length(struct request *request, uint64_t length)
{
    const uint64_t declared = request_body_length(request);

    if (declared == UINT64_MAX || declared == length)
        return false;
    problem_reply(request, PROBLEM_SIZE_MISMATCH, "this address is for %llu bytes, not %llu",
                  (unsigned long long)length, (unsigned long long)declared);
    return true;
}

bool lfs_body_refuse_crowd(struct request *request, const struct lfs_permit *permit,
                           uint64_t length, struct lfs_body *body)
{
    const unsigned limit =
        (unsigned)config_number(&request->server->config->upload.open_per_client);
    struct registry_entry *entry = &body->entry;

    *body = (struct lfs_body){.server = request->server};
    entry->kind = UPLOAD_KIND_FILE;
    registry_make_id(entry->id);
    strcpy(entry->model, permit->repo);
    strcpy(entry->client, permit->client);
    entry->created = time(NULL);
    atomic_init(&entry->length, length);
    atomic_init(&entry->active, entry->created);
    body->is_registered = registry_add(request->server->registry, entry, limit);
    if (body->is_registered)
        metric_add(METRIC_BEGUN_FILE, 1);
    else
        write_reply_crowded(request, limit, "upload.open_per_client");
    return !body->is_registered;
}

void lfs_body_note(struct lfs_body *body, uint64_t received)
{
    atomic_store(&body->entry.received, received);
    atomic_store(&body->entry.active, time(NULL));
}

void lfs_body_end(struct lfs_body *body, bool is_done)
{
    if (!body->is_registered)
        return;
    body->is_registered = false;
    metric_add(is_done ? METRIC_PUBLISHED_FILE : METRIC_FAILED_FILE, 1);
    registry_remove(body->server->registry, &body->entry);
}
