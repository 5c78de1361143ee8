/* Hashes and compresses a body while it arrives. Workers read back what was written, which is still
 * in the page cache, and give it to a sink: one worker at a time and in order. The loop never waits
 * for them.
 *
 * The follower also counts the references to its owner, a structure that contains it: those of the
 * request, and of queued and running jobs. */
#ifndef UPLOAD_SHARED_BODY_FOLLOWER_H
#define UPLOAD_SHARED_BODY_FOLLOWER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/workers.h"
#include "http/fields/digest_fields.h"
#include "store/store.h"
#include "zt/digest.h"
#include "zt/writer.h"

/* --- digests of one run of bytes, computed side by side --- */

/* All zero can only be freed. The values are valid after byte_digests_finish. */
struct byte_digests {
    struct zt_hasher *hashers[3];
    struct zt_digest sha256;
    struct zt_digest sha512;
    struct zt_digest xxh3;
};

/* SHA-256 is always computed. False if out of memory; call byte_digests_free in any case. */
bool byte_digests_init(struct byte_digests *digests, bool with_sha512, bool with_xxh3);
void byte_digests_update(struct byte_digests *digests, const void *bytes, size_t length);
/* The same as the function of a sink whose context is the digests. */
enum zt_status byte_digests_take(void *context, const void *bytes, size_t length,
                                 struct zt_error *error);
void byte_digests_finish(struct byte_digests *digests);
void byte_digests_free(struct byte_digests *digests);

/* Whether the digests of a field are right. If it states a SHA-512, that must have been
 * computed. */
bool byte_digests_agree(const struct byte_digests *digests, const struct digest_field *field);

/* --- the follower --- */

struct body_follower {
    /* Set by the owner before the first byte. */
    struct workers *workers;
    struct store *store;
    struct stored_upload *stored; /* its read_back is used by the follower alone until finish */
    uint64_t base;                /* where in it the body begins */
    struct zt_sink sink;
    _Atomic uint64_t client; /* who uploads (struct job); may change from request to request */

    /* Private. */
    void *owner;
    void (*free)(void *owner);
    void (*work)(void *context);
    void *work_context;
    atomic_uint references;
    struct job job;
    atomic_bool is_queued;
    pthread_mutex_t lock; /* of reading back and of the sink */
    atomic_uint_fast64_t received;
    atomic_uint_fast64_t taken;
    struct zt_error sink_error; /* stays: a sink cannot be given bytes twice */
};

/* With one reference. free(owner) is called when the last one is released, and has to call
 * body_follower_destroy. */
void body_follower_init(struct body_follower *follower, void *owner, void (*free)(void *owner));
void body_follower_destroy(struct body_follower *follower);

void body_follower_release(struct body_follower *follower);
/* The same on the loop, if freeing the owner takes a long time: a worker does it. */
void body_follower_release_on_worker(struct body_follower *follower);
/* Has a worker call work(context). False, without effect, while a job of the follower is queued or
 * running. */
bool body_follower_run(struct body_follower *follower, void (*work)(void *context), void *context);

/* Stops reading back, since the stored upload is about to be freed. */
void body_follower_stop(struct body_follower *follower);

uint64_t body_follower_received(const struct body_follower *follower);

/* Reports that length more bytes were written. Has a worker catch up if that is worth a job. */
void body_follower_advance(struct body_follower *follower, uint64_t length);

/* For a body that two workers handle, one writing and one digesting, while no job is queued. The
 * first reports that length more bytes were written; the second passes the bytes themselves, in
 * order, so that they are not read back. If the follower is far behind, since a process before this
 * one wrote most of the file, it catches up in jobs of its own instead. */
void body_follower_count(struct body_follower *follower, uint64_t length);
void body_follower_take(struct body_follower *follower, uint64_t at, const void *bytes,
                        size_t length);

/* Gives the sink what is left, when all bytes were written. To be called on a worker. May be
 * repeated after a failure to read. */
enum zt_status body_follower_finish(struct body_follower *follower, struct zt_error *error);

#endif
