/* Records a change of stored files as one commit of their repository, if versions are kept. Every
 * request that publishes or removes files calls begin before its first change, and before it locks
 * a name. */
#ifndef UPLOAD_SHARED_RECORDED_H
#define UPLOAD_SHARED_RECORDED_H

#include "base/server.h"
#include "http/exchange/request.h"
#include "store/store.h"
#include "upload/shared/failure.h"
#include "versions/recording.h"

/* A change in progress. Zeroed: none. */
struct recorded {
    struct recording recording;
};

/* Returns true if changing a small file may take long too: begin waits for other changes of the
 * repository and hashes its files, and claims wait for another machine. */
static inline bool recorded_is_long(struct server *server)
{
    return store_needs_claims(server->store) || store_history(server->store) != NULL;
}

bool recorded_begin_kept(struct recorded *recorded, struct server *server, const char *name,
                         bool is_file, struct failure *failure);
/* Begins a change of a model, or, with is_file, of the file at a path. Hashes unknown files of the
 * repository first. Returns false with failure set. On a worker; may take long. */
static inline bool recorded_begin(struct recorded *recorded, struct server *server,
                                  const char *name, bool is_file, struct failure *failure)
{
    *recorded = (struct recorded){.recording = {.is_locked = false}};
    return store_history(server->store) == NULL ||
           recorded_begin_kept(recorded, server, name, is_file, failure);
}

/* Returns true if the change in progress also covers the file at a path, or if versions are
 * off. */
bool recorded_covers(const struct recorded *recorded, struct server *server, const char *path);

void recorded_end_kept(struct recorded *recorded, bool is_changed, const char *client,
                       const char *action, const char *path, char out_commit[HISTORY_COMMIT_SIZE]);
/* Ends it; is_changed: something was published or removed. client: a name or NULL; action and path
 * are the commit's title, such as "PUT" and the path that begin was called with. out_commit: the
 * commit's identity; empty if there is none. */
static inline void recorded_end(struct recorded *recorded, bool is_changed, const char *client,
                                const char *action, const char *path,
                                char out_commit[HISTORY_COMMIT_SIZE])
{
    out_commit[0] = '\0';
    if (recorded->recording.is_locked)
        recorded_end_kept(recorded, is_changed, client, action, path, out_commit);
}

/* Adds the field ZT-Commit to the reply, unless the text is empty. */
static inline void recorded_reply(struct request *request, const char *commit)
{
    if (commit[0] != '\0')
        representation_field(&request->reply, "ZT-Commit", request_print(request, "%s", commit));
}

#endif
