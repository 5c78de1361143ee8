/* Assembles the files of a shard from the xorbs of its session, and stages them for a commit
 * (staged_objects.h). It works in steps, because files may be large: between two steps the worker
 * is free for other work.
 *
 * First the whole shard is checked: each xorb must be known and have the requested chunks, and the
 * disk must have space for all files, which is claimed. Then each file is written and hashed. Its
 * SHA-256 decides whether it is correct, so all other errors in the shard or the xorbs are detected
 * there. */
#ifndef HUB_XET_ASSEMBLY_H
#define HUB_XET_ASSEMBLY_H

#include "hub/version.h"
#include "hub/write/staged_objects.h"
#include "hub/xet/session.h"
#include "hub/xet/shard.h"
#include "zt/digest.h"

/* Bytes decoded per step. */
#define ASSEMBLY_STEP_BYTES ((uint64_t)64 << 20)
/* Maximum number of files per shard. Each becomes a staged file, of which a client may be allowed
 * fewer. */
#define ASSEMBLY_FILES_MAX 10000

struct assembly {
    /* Set by the owner in a cleared structure. The session must be in use, and the caller must have
     * the turn. */
    struct server *server;
    struct xet_session *session;
    bool sees_all;   /* the client may see all files of the repository */
    uint64_t offset; /* of the shard in the session's file */
    uint64_t length;

    bool is_done;
    struct failure failure;

    /* Private. */
    struct assembly_buffers *buffers;
    struct zt_source *source;    /* the session's file */
    struct hub_version *version; /* the repository's version before; NULL: must not be used */
    uint64_t record;             /* of the next file */
    uint64_t left;               /* bytes left in this step */
    uint64_t claimed;            /* disk space for later files */
    /* The file that is being written. */
    struct staged_object *object;
    struct zt_hasher *hasher;
    struct xet_shard_file file;
    uint32_t term;
    uint64_t written;
};

/* Does one step. Returns true if there is more to do; false if it is done, or failure is set. On a
 * worker. */
bool assembly_step(struct assembly *assembly);

/* Frees everything, and abandons unfinished objects. From any thread. */
void assembly_clear(struct assembly *assembly);

#endif
