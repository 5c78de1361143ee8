/* Builds the response to a publication, complete or not. */
#include "upload/shared/published.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/server.h"
#include "http/fields/digest_fields.h"
#include "http/fields/uri.h"
#include "upload/shared/recorded.h"

static atomic_bool were_noted;

void remains_note(void)
{
    atomic_store(&were_noted, true);
}

bool remains_were_noted(void)
{
    return atomic_load(&were_noted);
}

void remains_settle(struct remains *remains, struct store *store, const char *path,
                    const char *done)
{
    struct zt_error error;

    if (store_settle(store, path, &error) == ZT_OK)
        return;
    log_write(LOG_LEVEL_ERROR, "%s: %s, but this may not survive a power failure: %s", path, done,
              error.message);
    remains->is_unsynced = true;
    remains_note();
}

bool remains_fail(const struct remains *remains, const char *done, struct failure *failure)
{
    if (remains->replaced[0] != '\0')
        return failure_refuse(failure, PROBLEM_INCOMPLETE,
                              "the model was %s, but the %s file that it replaces could not be "
                              "removed: try again",
                              done, remains->replaced + 1);
    if (remains->has_files)
        return failure_refuse(failure, PROBLEM_INCOMPLETE,
                              "the model was %s, but some files of the old model could not be "
                              "removed: they are now separate models",
                              done);
    return !remains->is_unsynced ||
           failure_refuse(failure, PROBLEM_NOT_DURABLE,
                          "this was %s, but may not survive a power failure, because the disk "
                          "reported an error: try again",
                          done);
}

bool published_refuse(struct request *request, const struct published *published)
{
    struct failure failure = {.is_set = false};

    if (remains_fail(&published->remains, "published", &failure))
        return false;
    failure_reply(request, &failure);
    return true;
}

void published_reply_location(struct request *request, struct published_name name)
{
    struct href href;

    href_begin(&href, request->server->config->base_path);
    if (name.is_file) {
        href_plain(&href, "/files/");
        href_path(&href, name.text);
    } else {
        href_model(&href, name.text);
    }
    representation_field(&request->reply, "Location",
                         href.failed ? NULL : request_print(request, "%s", href.text));
    href_free(&href);
}

void published_reply_digest(struct request *request, const struct published *published)
{
    char digest[DIGEST_FIELD_SIZE];

    digest_field_format(published->sha256, digest);
    representation_field(&request->reply, "Repr-Digest", request_print(request, "%s", digest));
    request->reply.etag =
        published->etag[0] != '\0' ? request_print(request, "%s", published->etag) : NULL;
    recorded_reply(request, published->commit);
}

void published_reply(struct request *request, unsigned status, struct published_name name,
                     const struct published *published)
{
    reply_empty(request, status);
    published_reply_location(request, name);
    published_reply_digest(request, published);
}
