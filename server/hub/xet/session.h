/* Sessions of xet: the data that one upload has sent so far. Each upload gets its own address.
 * Clients remember things about an address (their cache of shards does, for weeks), and so never
 * about another upload; the server can discard all xorbs when the upload is over. The client
 * identifies a xorb by a hash (BLAKE3, keyed, over a tree) that is not checked here: only the
 * client that sent the xorb can refer to it, and the files made of it are checked by their SHA-256.
 *
 * A session is a kept upload (kept_uploads.h) with one file, in which xorbs and shards are stored
 * wherever there was room, and a table in memory that records where. It does not outlive the
 * process: clients then receive an error about unknown xorbs, and must be restarted to send all of
 * them again, to another address. */
#ifndef HUB_XET_SESSION_H
#define HUB_XET_SESSION_H

#include "hub/xet/xorb.h"
#include "upload/shared/failure.h"
#include "upload/shared/kept_uploads.h"

/* Maximum per session: 4 TiB in full xorbs, and 3 MiB of memory. */
#define XET_XORBS_MAX 65536
/* A client that has sent no data for this long (or upload.expire_s, if shorter) is considered
 * gone. */
#define XET_IDLE_S 3600
/* After a shard, a client may repeat it, if it did not receive the response, or send more
 * shards. */
#define XET_DONE_S 60

/* The kind for kept_uploads_new. */
extern const struct kept_kind xet_session_kind;

struct xet_session;

struct xet_xorb {
    uint8_t hash[32];
    uint64_t offset;      /* of its bytes in the session's file */
    uint64_t ends;        /* of the table there: the end of each chunk in the xorb (u32) */
    uint32_t chunk_count; /* 0: no chunks, here and in the table */
};

/* A session belongs to its owner (staged_owner): the same key means another session for another
 * client. */
struct xet_session_name {
    struct zt_text key; /* UPLOAD_ID_SIZE - 1 hex digits */
    const char *repo;
    const char *owner;
};

/* Finds a session, or begins it for a client. It is in use until xet_session_leave. Returns NULL
 * with failure set. Fast. */
struct xet_session *xet_session_use(struct server *server, const struct xet_session_name *name,
                                    const char *client, struct failure *failure);
/* Takes a void pointer for request_hold. */
void xet_session_leave(void *session);

const char *xet_session_repo(const struct xet_session *session);
const char *xet_session_client(const struct xet_session *session);
const char *xet_session_owner(const struct xet_session *session);

/* Reserves this many bytes in the session's file and on the disk. This function and the following
 * ones return false with failure set. */
bool xet_session_reserve(struct xet_session *session, uint64_t length, uint64_t *out_offset,
                         struct failure *failure);
/* Claims disk space for bytes that the caller will write, in the session's file or in another
 * one. */
bool xet_session_take_space(struct xet_session *session, uint64_t bytes, struct failure *failure);
/* Releases claimed bytes that will not be written to its file. */
void xet_session_return_space(struct xet_session *session, uint64_t bytes);
bool xet_session_write(struct xet_session *session, uint64_t offset, const void *bytes,
                       size_t length, struct failure *failure);

/* Adds a xorb whose bytes were written. If the hash already exists, the first xorb is kept. */
bool xet_session_add(struct xet_session *session, const struct xet_xorb *xorb,
                     struct failure *failure);
bool xet_session_find(struct xet_session *session, const uint8_t hash[32],
                      struct xet_xorb *out_xorb);

/* Only one request reads at once. Returns false if the waiter will be woken; then call it again. */
bool xet_session_take_turn(struct xet_session *session, struct waiter *waiter);
/* Ends the turn. is_done: a shard was accepted. */
void xet_session_end_turn(struct xet_session *session, bool is_done);
/* Returns the bytes written before the call, for the request that has the turn; borrowed until the
 * next call. */
bool xet_session_read(struct xet_session *session, struct zt_source **out_source,
                      struct failure *failure);

#endif
