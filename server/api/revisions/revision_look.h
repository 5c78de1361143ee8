/* One branch, tag or commit of a model's repository, looked up for a request. */
#ifndef API_REVISIONS_REVISION_LOOK_H
#define API_REVISIONS_REVISION_LOOK_H

#include "http/exchange/request.h"
#include "http/revisions/revision.h"
#include "store/versions/history.h"

struct revision_look {
    struct server *server;
    struct history *history; /* NULL: versions are not kept */
    struct zt_text model;
    struct zt_text name; /* of the branch or tag; or a commit */

    enum zt_status status;
    struct zt_error error;
    struct history_repo repo;
    struct history_found found;
    struct history_ref ref; /* if found is a branch or tag */
    struct history_commit *commit;
    struct history_ref *refs;
    size_t ref_count;
    bool is_mirrored;
    struct revision_found mirrored;
};

/* Makes the request's context, cleared, of a size of at least a revision_look's, which it begins
 * with. Returns NULL if it has replied. */
void *revision_look_new(struct request *request, size_t size);

/* Finds the revision: status, and error if it fails. May be called again. On a worker; may wait for
 * an upstream. */
void revision_look_read(struct revision_look *look);

/* Replies with the revision as JSON. */
enum outcome revision_look_reply(struct request *request, struct revision_look *look,
                                 unsigned status);

#endif
