/* Refusals of writes to paths. */
#include "upload/shared/file_checks.h"

#include <stdio.h>
#include <string.h>

#include "access/access.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/fields/uri.h"

bool write_refuse_file_path(struct request *request, struct zt_text path)
{
    if (!file_path_is_writable(path)) {
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "the path of a file to be written is UTF-8 without control characters, in "
                      "parts of 1 to 255 bytes that do not begin with a dot");
        return true;
    }
    if (authorize_sees_file(request, path))
        return false;
    access_count_failure(ACCESS_MODEL);
    problem_reply(request, PROBLEM_FORBIDDEN, "this client may not use a file of this name");
    return true;
}

static void reply_done_already(struct request *request, const char *path,
                               const struct file_found *found)
{
    struct published published = {.replaced = true};

    memcpy(published.sha256, found->sha256, sizeof(published.sha256));
    snprintf(published.etag, sizeof(published.etag), "%s", found->etag);
    reply_empty(request, 204);
    published_reply_file(request, zt_text_from(path));
    published_reply_digest(request, &published);
}

bool write_refuse_file_preconditions(struct request *request, const char *path,
                                     struct preconditions *out_preconditions)
{
    struct failure failure = {.is_set = false};
    struct file_found found;

    *out_preconditions = write_preconditions(request);
    if (write_refuse_tags(request, out_preconditions->if_none_match))
        return true;
    if (!preconditions_are_given(out_preconditions) || store_is_elsewhere(request->server->store))
        return false;
    if (!file_look(request->server, path, &found, &failure)) {
        failure_reply(request, &failure);
        return true;
    }
    if (file_preconditions_hold(out_preconditions, &found))
        return false;
    if (found.has_sha256 && write_is_done_already(request, found.sha256))
        reply_done_already(request, path, &found);
    else
        problem_reply(request, PROBLEM_PRECONDITION_FAILED,
                      "the current file does not meet the request's preconditions");
    return true;
}

void published_reply_file(struct request *request, struct zt_text path)
{
    struct href href;

    href_begin(&href, request->server->config->base_path);
    href_plain(&href, "/files/");
    href_path(&href, path);
    representation_field(&request->reply, "Location",
                         href.failed ? NULL : request_print(request, "%s", href.text));
    href_free(&href);
}
