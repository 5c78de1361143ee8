/* Hashes and compresses a body while it arrives: gives its bytes to a sink in order, on one worker
 * after another. Bytes that were written on the loop, or by an earlier process, are read back
 * first, usually from the page cache. The loop never waits for this. If a processor is free, one
 * worker follows while another writes the next pieces.
 *
 * The follower also counts the references to its owner, the structure that contains it. The request
 * and each queued or running job hold one. */
#ifndef UPLOAD_SHARED_BODY_FOLLOWER_H
#define UPLOAD_SHARED_BODY_FOLLOWER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/workers.h"
#include "http/exchange/request.h"
#include "http/fields/digest_fields.h"
#include "store/store.h"
#include "upload/shared/failure.h"
#include "zt/digest.h"
#include "zt/writer.h"

/* --- digests of one run of bytes, computed side by side --- */

/* A zeroed structure can only be freed. The values are valid after byte_digests_finish. */
struct byte_digests {
    struct zt_hasher *hashers[3];
    /* Called with all bytes, in order, if it is set after byte_digests_init; NULL: none. */
    void (*also)(void *context, const void *bytes, size_t length);
    void *also_context;
    struct zt_digest sha256;
    struct zt_digest sha512;
    struct zt_digest xxh3;
};

/* Always computes SHA-256. Returns false if out of memory; call byte_digests_free in any case. */
bool byte_digests_init(struct byte_digests *digests, bool with_sha512, bool with_xxh3);
void byte_digests_update(struct byte_digests *digests, const void *bytes, size_t length);
/* Does the same for two bodies at once, which takes less time than one after the other. */
void byte_digests_update_pair(struct byte_digests *first, const void *first_bytes,
                              size_t first_length, struct byte_digests *second,
                              const void *second_bytes, size_t second_length);
/* Updates the digests that are its context. Can be used as a sink's function. */
enum zt_status byte_digests_take(void *context, const void *bytes, size_t length,
                                 struct zt_error *error);
void byte_digests_finish(struct byte_digests *digests);
void byte_digests_free(struct byte_digests *digests);

/* Returns true if the digests of a field are right. If it contains a SHA-512, that must have been
 * computed. */
bool byte_digests_agree(const struct byte_digests *digests, const struct digest_field *field);

/* --- the follower --- */

/* The maximum number of pieces between the worker that writes and the one that follows. */
#define FOLLOWER_PIECES 8

/* A piece that was written and handed over to the following worker. */
struct handed_piece {
    const void *bytes;
    size_t length;
    uint64_t at; /* as received counts */
    struct piece_keeper *keeper;
};

struct body_follower {
    /* Set by the owner before the first byte. */
    struct workers *workers;
    struct staged_file *stored; /* only the follower uses its read_back, until finish */
    uint64_t base;              /* offset of the body in it */
    /* With byte_digests_take, two bodies that wait for a worker are hashed side by side. */
    struct zt_sink sink;
    _Atomic uint64_t client;     /* the uploading client (struct job); may change from request to
                                  * request */
    void (*rested)(void *owner); /* NULL, or called on the worker after each job */

    /* Private. */
    void *owner;
    void (*free)(void *owner);
    void (*work)(void *context);
    void *work_context;
    atomic_uint references;
    struct job job;
    atomic_bool is_queued;
    pthread_mutex_t lock; /* guards reading back and the sink */
    atomic_uint_fast64_t received;
    atomic_uint_fast64_t taken;
    struct handed_piece handed[FOLLOWER_PIECES]; /* a ring; the writing worker adds to it */
    atomic_uint_fast64_t handed_count;
    atomic_uint_fast64_t followed_count; /* of those; changed under the lock */
    bool is_waiting;                     /* in the list of followers with a queued job */
    struct body_follower *waiting_next;
    struct zt_error sink_error; /* permanent: a sink cannot be given bytes twice */
};

/* Starts with one reference. free(owner) is called when the last one is released, and must call
 * body_follower_destroy. */
void body_follower_init(struct body_follower *follower, void *owner, void (*free)(void *owner));
void body_follower_destroy(struct body_follower *follower);

void body_follower_release(struct body_follower *follower);
/* Releases a reference on the loop if freeing the owner takes long: a worker frees it. */
void body_follower_release_on_worker(struct body_follower *follower);
/* Runs work(context) on a worker. Returns false, without effect, while a job of the follower is
 * queued or running. */
bool body_follower_run(struct body_follower *follower, void (*work)(void *context), void *context);

/* Stops reading back, because the stored upload is about to be freed; then continues with another
 * upload of the same bytes. */
void body_follower_stop(struct body_follower *follower);
void body_follower_continue(struct body_follower *follower, struct staged_file *stored);
/* Returns true if a job is queued or running. */
bool body_follower_is_busy(const struct body_follower *follower);

uint64_t body_follower_received(const struct body_follower *follower);

/* Reports that length more bytes were written. Starts a job to catch up if enough bytes are
 * waiting. */
void body_follower_advance(struct body_follower *follower, uint64_t length);

/* Reports that a piece of the body was written. On a worker, its bytes go to the sink at once,
 * unless too many earlier bytes must be read back first. If a processor is free, the piece is kept
 * and another worker gives it to the sink. */
void body_follower_take(struct body_follower *follower, const struct body_piece *piece);

/* Gives the rest to the sink once all bytes are written. On a worker. May be repeated after a read
 * failure. */
enum zt_status body_follower_finish(struct body_follower *follower, struct zt_error *error);

/* --- a body that is a whole file: stored and hashed piece by piece; after the first failure, which
 * is kept, the rest is discarded --- */

struct whole_body;

struct whole_body_ops {
    /* Appends bytes to the stored body. Returns false with failure set. */
    bool (*store)(struct whole_body *body, const void *bytes, size_t length);
    /* Removes the stored bytes. On a worker, while no thread reads them. */
    void (*drop)(struct whole_body *body);
    /* Frees the owner, and calls whole_body_destroy. */
    void (*free)(void *owner);
};

/* The first member of the structure that owns it, which is the context of the request. */
struct whole_body {
    struct body_follower follower; /* its references are references to the owner */
    const struct whole_body_ops *ops;
    struct digest_field content_digest; /* from the request (write_refuse_digests) */
    struct digest_field repr_digest;
    struct byte_digests digests; /* valid after whole_body_finish */
    bool is_dropped;             /* the stored bytes are removed, or about to be */
    struct failure failure;
};

/* Starts with one reference. It belongs to the request, which calls release when it ends. */
void whole_body_init(struct whole_body *body, struct request *request,
                     const struct whole_body_ops *ops, void (*release)(void *owner));
void whole_body_destroy(struct whole_body *body);

/* Called before the first byte. stored remains the owner's. Returns false with failure set. */
bool whole_body_start(struct whole_body *body, struct server *server, struct staged_file *stored);

/* Hashes the rest, and compares the digests with the request's. On a worker. Returns false with
 * failure set. */
bool whole_body_finish(struct whole_body *body);

#endif
