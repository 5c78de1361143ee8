/* The files of a shard, put together from the xorbs of its session and staged for a commit
 * (staged_objects.h). In steps, since files may be large: between two of them the worker is free
 * for others.
 *
 * First the whole shard is checked: that each xorb is known, and has the chunks that are asked for.
 * Then each file is written and hashed. Its SHA-256 decides whether it is what the client meant:
 * whatever else the shard or the xorbs got wrong shows there. */
#ifndef HUB_XET_ASSEMBLY_H
#define HUB_XET_ASSEMBLY_H

#include "hub/version.h"
#include "hub/write/staged_objects.h"
#include "hub/xet/session.h"
#include "hub/xet/shard.h"
#include "zt/digest.h"

/* Decoded in one step. */
#define ASSEMBLY_STEP_BYTES ((uint64_t)64 << 20)
/* Of one shard; each becomes a staged file, of which a client may have fewer. */
#define ASSEMBLY_FILES_MAX 10000

struct assembly {
    /* Set by the owner in a cleared structure; the session is in use, and it is its turn. */
    struct server *server;
    struct xet_session *session;
    bool sees_all;   /* whether the client sees all files of the repository */
    uint64_t offset; /* of the shard in its file */
    uint64_t length;

    bool is_done;
    struct failure failure;

    /* Private. */
    struct assembly_buffers *buffers;
    struct zt_source *source;    /* the session's file */
    struct hub_version *version; /* of the repository, before; NULL: not to be known */
    uint64_t record;             /* of the file that comes next */
    uint64_t left;               /* bytes of this step */
    /* The file that is being written. */
    struct staged_object *object;
    struct zt_hasher *hasher;
    struct xet_shard_file file;
    uint32_t term;
    uint64_t written;
};

/* A step. True: there is more to do; false: it is done, or failure is set. On a worker. */
bool assembly_step(struct assembly *assembly);

/* Frees everything, and abandons what is not finished. From any thread. */
void assembly_clear(struct assembly *assembly);

#endif
