/* GET /v1/models/{model}/revisions/{name}: a branch, a tag or a commit. */
#include <stdlib.h>
#include <string.h>

#include "api/json_reply.h"
#include "api/revisions/handlers.h"
#include "api/revisions/revision_look.h"
#include "http/revisions/revision.h"

static void read_revision(struct request *request)
{
    revision_look_read(request->context);
}

enum outcome revision_get(struct request *request)
{
    struct revision_look *look = request->context;

    if (look == NULL) {
        look = revision_look_new(request, sizeof(*look));
        return look != NULL ? request_work(request, read_revision) : OUTCOME_READY;
    }
    if (look->status != ZT_OK)
        return revision_reply_failure(request, &look->error);
    return revision_look_reply(request, look, 200);
}
