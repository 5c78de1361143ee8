/* Removes a file by its path. What needs it, as its shard or part, is then incomplete. */
#include "upload/whole/file_delete.h"

#include <string.h>

#include "upload/shared/file_checks.h"

struct file_removal {
    char path[MODEL_NAME_MAX + 1];
    struct preconditions preconditions; /* texts are the request's, which waits */
    struct failure failure;
};

static void run_removal(struct request *request)
{
    struct file_removal *removal = request->context;

    (void)file_remove(request->server, removal->path, &removal->preconditions, &removal->failure);
}

void file_delete_begin(struct request *request)
{
    if (!write_refuse_read_only(request))
        (void)write_refuse_file_path(request, request->names[0]);
}

enum outcome file_delete_handle(struct request *request)
{
    struct file_removal *removal = request->context;

    if (removal == NULL) {
        removal = write_context(request, sizeof(*removal));
        if (removal == NULL)
            return OUTCOME_READY;
        memcpy(removal->path, request->names[0].bytes, request->names[0].length);
        removal->preconditions = write_preconditions(request);
        return store_is_elsewhere(request->server->store) ? request_work_long(request, run_removal)
                                                          : request_work(request, run_removal);
    }
    if (removal->failure.is_set)
        return failure_reply(request, &removal->failure);
    reply_empty(request, 204);
    return OUTCOME_READY;
}
