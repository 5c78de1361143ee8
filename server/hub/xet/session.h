/* Sessions of xet: what one upload has sent so far. A client is given an address of its own for
 * each upload, so that what it remembers of an address (its cache of shards does, over weeks) is
 * about this upload, and a server may forget all xorbs of it when it is over. To the other side a
 * xorb is known by a hash (BLAKE3, with keys, over a tree) that is not checked here: nobody but the
 * client that sent it can name it, and what is made of it is judged by its SHA-256.
 *
 * A session is a kept upload (kept_uploads.h) with one file, in which xorbs and shards lie where
 * there was room, and a table in memory that says which. It does not outlive the process: the
 * client is then told that its xorbs are unknown, and sends all of them again when it is started
 * again, to another address. */
#ifndef HUB_XET_SESSION_H
#define HUB_XET_SESSION_H

#include "hub/xet/xorb.h"
#include "upload/shared/failure.h"
#include "upload/shared/kept_uploads.h"

/* Of one session: 4 TiB in full ones, and 3 MiB of memory. */
#define XET_XORBS_MAX 65536
/* A client that has sent nothing for so long (or upload.expire_s, if that is shorter) has left. */
#define XET_IDLE_S 3600
/* After a shard a client may repeat it, if it did not get the answer, or send more of them. */
#define XET_DONE_S 60

/* The kind for kept_uploads_new. */
extern const struct kept_kind xet_session_kind;

struct xet_session;

struct xet_xorb {
    uint8_t hash[32];
    uint64_t offset;      /* of its bytes in the session's file */
    uint64_t ends;        /* of the table there: where each chunk ends in the xorb (u32) */
    uint32_t chunk_count; /* 0: none, here and in the table */
};

/* Finds the session that a client calls by this key (UPLOAD_ID_SIZE - 1 hex digits), or begins it.
 * It is in use until xet_session_leave. NULL: failure is set. Fast. */
struct xet_session *xet_session_use(struct server *server, struct zt_text key, const char *repo,
                                    const char *client, struct failure *failure);
/* void * for request_hold. */
void xet_session_leave(void *session);

const char *xet_session_repo(const struct xet_session *session);
const char *xet_session_client(const struct xet_session *session);

/* Room in its file for this many bytes. False: failure is set, here and below. */
bool xet_session_reserve(struct xet_session *session, uint64_t length, uint64_t *out_offset,
                         struct failure *failure);
bool xet_session_write(struct xet_session *session, uint64_t offset, const void *bytes,
                       size_t length, struct failure *failure);

/* Makes a xorb known whose bytes were written; the first one of a hash stays. */
bool xet_session_add(struct xet_session *session, const struct xet_xorb *xorb,
                     struct failure *failure);
bool xet_session_find(struct xet_session *session, const uint8_t hash[32],
                      struct xet_xorb *out_xorb);

/* One request at a time reads. False: the waiter will be woken, and is to ask again. */
bool xet_session_take_turn(struct xet_session *session, struct waiter *waiter);
/* Ends it. is_done: a shard was accepted. */
void xet_session_end_turn(struct xet_session *session, bool is_done);
/* What was written before the call, for whoever has the turn; borrowed until the next call. */
bool xet_session_read(struct xet_session *session, struct zt_source **out_source,
                      struct failure *failure);

#endif
