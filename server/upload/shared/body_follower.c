/* Any worker may continue reading under the lock, so the end of the body never waits for a queued
 * job. */
#include "upload/shared/body_follower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "base/server.h"
#include "store/staging.h"

#define PIECE_BYTES ((size_t)256 << 10)
/* Fewer bytes than this do not justify a job. */
#define FOLLOW_BYTES ((uint64_t)1 << 20)
/* The maximum that one job reads, because other jobs wait for the worker. */
#define JOB_BYTES ((uint64_t)8 << 20)
/* The maximum number of pieces that one job takes, for the same reason. */
#define JOB_PIECES 32
/* Smaller pieces are hashed before another worker could begin. */
#define HANDED_BYTES ((size_t)64 << 10)

/* --- digests --- */

enum { SHA256, SHA512, XXH3 };

bool byte_digests_init(struct byte_digests *digests, bool with_sha512, bool with_xxh3)
{
    assert(digests->hashers[SHA256] == NULL);
    return zt_hasher_new(ZT_DIGEST_SHA256, &digests->hashers[SHA256]) == ZT_OK &&
           (!with_sha512 || zt_hasher_new(ZT_DIGEST_SHA512, &digests->hashers[SHA512]) == ZT_OK) &&
           (!with_xxh3 || zt_hasher_new(ZT_DIGEST_XXH3, &digests->hashers[XXH3]) == ZT_OK);
}

static void update_others(struct byte_digests *digests, const void *bytes, size_t length)
{
    for (int i = SHA512; i <= XXH3; i++)
        if (digests->hashers[i] != NULL)
            zt_hasher_update(digests->hashers[i], bytes, length);
    if (digests->also != NULL)
        digests->also(digests->also_context, bytes, length);
}

/* Each hasher gets a piece while it is in the processor's cache. */
void byte_digests_update(struct byte_digests *digests, const void *bytes, size_t length)
{
    assert(digests->hashers[SHA256] != NULL);
    zt_hasher_update(digests->hashers[SHA256], bytes, length);
    update_others(digests, bytes, length);
}

void byte_digests_update_pair(struct byte_digests *first, const void *first_bytes,
                              size_t first_length, struct byte_digests *second,
                              const void *second_bytes, size_t second_length)
{
    assert(first != second && first->hashers[SHA256] != NULL);
    zt_hasher_update_pair(first->hashers[SHA256], first_bytes, first_length,
                          second->hashers[SHA256], second_bytes, second_length);
    update_others(first, first_bytes, first_length);
    update_others(second, second_bytes, second_length);
}

enum zt_status byte_digests_take(void *context, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    (void)error;
    byte_digests_update(context, bytes, length);
    return ZT_OK;
}

void byte_digests_finish(struct byte_digests *digests)
{
    struct zt_digest *const values[] = {&digests->sha256, &digests->sha512, &digests->xxh3};

    for (int i = SHA256; i <= XXH3; i++)
        if (digests->hashers[i] != NULL)
            zt_hasher_finish(digests->hashers[i], values[i]);
}

void byte_digests_free(struct byte_digests *digests)
{
    for (int i = SHA256; i <= XXH3; i++) {
        zt_hasher_free(digests->hashers[i]);
        digests->hashers[i] = NULL;
    }
}

bool byte_digests_agree(const struct byte_digests *digests, const struct digest_field *field)
{
    assert(digests->sha256.length_bytes == sizeof(field->sha256));
    assert(!field->has_sha512 || digests->hashers[SHA512] != NULL);
    return (!field->has_sha256 ||
            memcmp(field->sha256, digests->sha256.bytes, sizeof(field->sha256)) == 0) &&
           (!field->has_sha512 ||
            memcmp(field->sha512, digests->sha512.bytes, sizeof(field->sha512)) == 0);
}

/* --- life, and jobs --- */

static void run_job(struct job *job);
static void follow_handed(void *context);

static bool has_handed(const struct body_follower *follower)
{
    return atomic_load(&follower->followed_count) < atomic_load(&follower->handed_count);
}

void body_follower_init(struct body_follower *follower, void *owner, void (*free)(void *owner))
{
    assert(owner != NULL && free != NULL);
    follower->owner = owner;
    follower->free = free;
    follower->job.run = run_job;
    follower->rested = NULL;
    atomic_init(&follower->references, 1);
    pthread_mutex_init(&follower->lock, NULL);
}

void body_follower_destroy(struct body_follower *follower)
{
    assert(!has_handed(follower));
    assert(atomic_load(&follower->references) == 0);
    assert(!atomic_load(&follower->is_queued));
    pthread_mutex_destroy(&follower->lock);
}

void body_follower_release(struct body_follower *follower)
{
    unsigned before = atomic_fetch_sub(&follower->references, 1);

    assert(before > 0);
    if (before == 1)
        follower->free(follower->owner);
}

static void run_job(struct job *job)
{
    struct body_follower *follower =
        (struct body_follower *)((char *)job - offsetof(struct body_follower, job));

    assert(atomic_load(&follower->is_queued) && atomic_load(&follower->references) > 0);
    follower->work(follower->work_context);
    atomic_store(&follower->is_queued, false);
    /* Pieces that were handed over since the work looked for them. */
    if (has_handed(follower))
        (void)body_follower_run(follower, follow_handed, follower);
    if (follower->rested != NULL)
        follower->rested(follower->owner);
    body_follower_release(follower);
}

bool body_follower_run(struct body_follower *follower, void (*work)(void *context), void *context)
{
    if (atomic_exchange(&follower->is_queued, true))
        return false;
    assert(follower->workers != NULL && atomic_load(&follower->references) > 0);
    follower->work = work;
    follower->work_context = context;
    atomic_fetch_add(&follower->references, 1);
    follower->job.client = atomic_load(&follower->client);
    workers_submit(follower->workers, &follower->job);
    return true;
}

static void do_nothing(void *context)
{
    (void)context;
}

/* The job's reference is then the last one. */
void body_follower_release_on_worker(struct body_follower *follower)
{
    assert(atomic_load(&follower->references) > 0);
    (void)body_follower_run(follower, do_nothing, NULL);
    body_follower_release(follower);
}

/* --- following --- */

uint64_t body_follower_received(const struct body_follower *follower)
{
    return atomic_load(&follower->received);
}

void body_follower_stop(struct body_follower *follower)
{
    pthread_mutex_lock(&follower->lock);
    follower->stored = NULL;
    pthread_mutex_unlock(&follower->lock);
}

void body_follower_continue(struct body_follower *follower, struct staged_file *stored)
{
    assert(stored != NULL);
    pthread_mutex_lock(&follower->lock);
    assert(follower->stored == NULL);
    follower->stored = stored;
    pthread_mutex_unlock(&follower->lock);
}

bool body_follower_is_busy(const struct body_follower *follower)
{
    return atomic_load(&follower->is_queued);
}

static enum zt_status give_to_sink(struct body_follower *follower, const void *bytes, size_t length)
{
    struct zt_error *error = &follower->sink_error;

    assert(follower->sink.take != NULL);
    assert(error->status == ZT_OK);
    assert(atomic_load(&follower->taken) + length <= atomic_load(&follower->received));
    error->status = follower->sink.take(follower->sink.context, bytes, length, error);
    if (error->status == ZT_OK)
        atomic_fetch_add(&follower->taken, length);
    return error->status;
}

/* The lock must be held. */
static enum zt_status read_to(struct body_follower *follower, uint64_t end, uint8_t *buffer,
                              struct zt_error *error)
{
    uint64_t at = atomic_load(&follower->taken);
    struct zt_source *source;
    enum zt_status status;

    assert(at < end && follower->stored != NULL);
    status = staged_file_read_back(follower->stored, &source, error);
    while (status == ZT_OK && at < end) {
        size_t length = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;

        status = zt_source_read_at(source, follower->base + at, buffer, length, error);
        if (status == ZT_OK)
            status = give_to_sink(follower, buffer, length);
        at += length;
    }
    assert(status != ZT_OK || atomic_load(&follower->taken) == end);
    if (follower->sink_error.status != ZT_OK)
        *error = follower->sink_error;
    return status;
}

/* The lock must be held. Does nothing once the body is finished: the file may be gone. */
static enum zt_status take_to(struct body_follower *follower, uint64_t end, struct zt_error *error)
{
    const uint64_t taken = atomic_load(&follower->taken);
    enum zt_status status;
    uint8_t *buffer;

    if (follower->sink_error.status != ZT_OK) {
        *error = follower->sink_error;
        return error->status;
    }
    if (taken >= end)
        return ZT_OK;
    assert(end <= atomic_load(&follower->received));
    if (follower->stored == NULL)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the body was abandoned");
    buffer = malloc(end - taken < PIECE_BYTES ? (size_t)(end - taken) : PIECE_BYTES);
    if (buffer == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to read a body with");
    status = read_to(follower, end, buffer, error);
    free(buffer);
    return status;
}

/* Ignores failures: they occur again in body_follower_finish, which reports them. */
static void catch_up(void *context)
{
    struct body_follower *follower = context;
    struct zt_error ignored;
    uint64_t end;
    uint64_t most;

    pthread_mutex_lock(&follower->lock);
    end = atomic_load(&follower->received);
    most = atomic_load(&follower->taken) + JOB_BYTES;
    (void)take_to(follower, end < most ? end : most, &ignored);
    pthread_mutex_unlock(&follower->lock);
}

void body_follower_advance(struct body_follower *follower, uint64_t length)
{
    uint64_t received = atomic_fetch_add(&follower->received, length) + length;
    uint64_t taken = atomic_load(&follower->taken);

    if (received >= taken + FOLLOW_BYTES)
        (void)body_follower_run(follower, catch_up, follower);
}

/* The lock must be held. A job may have read these bytes back already. */
static void take_piece(struct body_follower *follower, const struct handed_piece *piece)
{
    struct zt_error error;

    assert(piece->at + piece->length <= atomic_load(&follower->received));
    if (piece->at < atomic_load(&follower->taken) + JOB_BYTES &&
        take_to(follower, piece->at, &error) == ZT_OK && atomic_load(&follower->taken) == piece->at)
        (void)give_to_sink(follower, piece->bytes, piece->length);
}

static void end_piece(struct body_follower *follower)
{
    struct piece_keeper *keeper =
        follower->handed[atomic_load(&follower->followed_count) % FOLLOWER_PIECES].keeper;

    assert(has_handed(follower) && keeper->is_kept);
    atomic_fetch_add(&follower->followed_count, 1);
    piece_keeper_return(keeper);
}

/* The lock must be held. Takes at most this many pieces. */
static void take_handed(struct body_follower *follower, unsigned most)
{
    while (most-- > 0 && has_handed(follower)) {
        const struct handed_piece piece =
            follower->handed[atomic_load(&follower->followed_count) % FOLLOWER_PIECES];

        take_piece(follower, &piece);
        end_piece(follower);
    }
}

/* --- two bodies side by side --- */

/* The followers whose job is queued to take pieces. Their jobs keep them. */
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static struct body_follower *waiting_first;

/* Queues the job, which stops the waiting as its first step. */
static void begin_waiting(struct body_follower *follower)
{
    pthread_mutex_lock(&waiting_lock);
    if (body_follower_run(follower, follow_handed, follower)) {
        assert(!follower->is_waiting);
        follower->is_waiting = true;
        follower->waiting_next = waiting_first;
        waiting_first = follower;
    }
    pthread_mutex_unlock(&waiting_lock);
}

static void end_waiting(struct body_follower *follower)
{
    struct body_follower **link = &waiting_first;

    pthread_mutex_lock(&waiting_lock);
    while (follower->is_waiting && *link != follower)
        link = &(*link)->waiting_next;
    if (follower->is_waiting)
        *link = follower->waiting_next;
    follower->is_waiting = false;
    pthread_mutex_unlock(&waiting_lock);
}

/* Returns a follower that waits, locked and with a reference, or NULL. */
static struct body_follower *find_second(void)
{
    struct body_follower *found;

    pthread_mutex_lock(&waiting_lock);
    found = waiting_first;
    while (found != NULL && pthread_mutex_trylock(&found->lock) != 0)
        found = found->waiting_next;
    assert(found == NULL || found->is_waiting);
    if (found != NULL)
        atomic_fetch_add(&found->references, 1);
    pthread_mutex_unlock(&waiting_lock);
    return found;
}

/* Returns the digests that the sink updates, or NULL if it does anything else. */
static struct byte_digests *digests_of(const struct body_follower *follower)
{
    assert(follower->sink.take != NULL);
    return follower->sink.take == byte_digests_take ? follower->sink.context : NULL;
}

/* Returns the next piece if the sink may have it now, or NULL. The lock must be held. */
static const struct handed_piece *next_piece(struct body_follower *follower)
{
    const struct handed_piece *piece =
        &follower->handed[atomic_load(&follower->followed_count) % FOLLOWER_PIECES];

    return digests_of(follower) != NULL && has_handed(follower) &&
                   follower->sink_error.status == ZT_OK &&
                   atomic_load(&follower->taken) == piece->at
               ? piece
               : NULL;
}

/* Both locks must be held. */
static void take_pairs(struct body_follower *first, struct body_follower *second)
{
    const struct handed_piece *one;
    const struct handed_piece *other;

    assert(first != second);
    for (unsigned i = 0; i < JOB_PIECES && (one = next_piece(first)) != NULL &&
                         (other = next_piece(second)) != NULL;
         i++) {
        byte_digests_update_pair(digests_of(first), one->bytes, one->length, digests_of(second),
                                 other->bytes, other->length);
        atomic_fetch_add(&first->taken, one->length);
        atomic_fetch_add(&second->taken, other->length);
        end_piece(first);
        end_piece(second);
    }
}

static void follow_handed(void *context)
{
    struct body_follower *follower = context;
    struct body_follower *second;

    end_waiting(follower);
    pthread_mutex_lock(&follower->lock);
    second = next_piece(follower) != NULL ? find_second() : NULL;
    if (second != NULL) {
        take_pairs(follower, second);
        pthread_mutex_unlock(&second->lock);
    }
    take_handed(follower, JOB_PIECES);
    pthread_mutex_unlock(&follower->lock);
    /* May free the second body, which takes other locks. */
    if (second != NULL)
        body_follower_release(second);
}

/* Returns true if another processor could follow, or another body is waiting to be hashed.
 * Idle jobs give way. */
static bool is_worthwhile(struct workers *workers)
{
    struct workers_load load;

    if (processors_count() > 1)
        return true;
    workers_load(workers, &load);
    return load.queued[0] + load.running[0] + load.running[1] > 1;
}

static bool should_hand_over(struct body_follower *follower, const struct handed_piece *piece)
{
    const uint64_t waiting =
        atomic_load(&follower->handed_count) - atomic_load(&follower->followed_count);

    assert(waiting <= FOLLOWER_PIECES);
    /* Behind too many bytes it would not be taken, and nothing would read those back. */
    if (piece->at >= atomic_load(&follower->taken) + JOB_BYTES)
        return false;
    return piece->keeper != NULL && piece->length >= HANDED_BYTES && waiting < FOLLOWER_PIECES &&
           (waiting > 0 || is_worthwhile(follower->workers));
}

static void hand_over(struct body_follower *follower, const struct handed_piece *piece)
{
    assert(follower->workers != NULL && piece->length > 0);
    piece_keeper_keep(piece->keeper);
    follower->handed[atomic_load(&follower->handed_count) % FOLLOWER_PIECES] = *piece;
    atomic_fetch_add(&follower->handed_count, 1);
    /* A running job takes it too, or the next one does (run_job). */
    begin_waiting(follower);
}

void body_follower_take(struct body_follower *follower, const struct body_piece *piece)
{
    struct handed_piece written = {piece->bytes, piece->length, 0, piece->keeper};

    if (piece->on_loop) {
        body_follower_advance(follower, piece->length);
        return;
    }
    written.at = atomic_fetch_add(&follower->received, piece->length);
    if (should_hand_over(follower, &written)) {
        hand_over(follower, &written);
        return;
    }
    pthread_mutex_lock(&follower->lock);
    take_handed(follower, FOLLOWER_PIECES);
    take_piece(follower, &written);
    pthread_mutex_unlock(&follower->lock);
    if (written.at + piece->length >= atomic_load(&follower->taken) + JOB_BYTES)
        (void)body_follower_run(follower, catch_up, follower);
}

enum zt_status body_follower_finish(struct body_follower *follower, struct zt_error *error)
{
    enum zt_status status;

    pthread_mutex_lock(&follower->lock);
    take_handed(follower, FOLLOWER_PIECES);
    status = take_to(follower, atomic_load(&follower->received), error);
    assert(status != ZT_OK || atomic_load(&follower->taken) == atomic_load(&follower->received));
    pthread_mutex_unlock(&follower->lock);
    return status;
}

/* --- a body that is a whole file --- */

static void drop_stored(void *context)
{
    struct whole_body *body = context;

    assert(body->failure.is_set);
    body_follower_stop(&body->follower);
    body->ops->drop(body);
}

/* Removes the stored bytes of a refused body at once, so that a full disk does not wait for a slow
 * client. That is impossible while a worker hashes; the next piece of the body then tries again. */
static void drop(struct whole_body *body)
{
    assert(body->failure.is_set);
    if (!body->is_dropped)
        body->is_dropped = body_follower_run(&body->follower, drop_stored, body);
}

static void receive(struct request *request, const struct body_piece *piece)
{
    struct whole_body *body = request->context;

    if (body->failure.is_set) {
        drop(body);
        return;
    }
    if (body->ops->store(body, piece->bytes, piece->length))
        body_follower_take(&body->follower, piece);
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};

void whole_body_init(struct whole_body *body, struct request *request,
                     const struct whole_body_ops *ops, void (*release)(void *owner))
{
    assert(ops->store != NULL && ops->drop != NULL && ops->free != NULL);
    body_follower_init(&body->follower, body, ops->free);
    body->follower.client = request_client_key(request);
    body->ops = ops;
    request->context = body;
    request->receiver = &receiver;
    request_hold(request, body, release);
}

void whole_body_destroy(struct whole_body *body)
{
    byte_digests_free(&body->digests);
    body_follower_destroy(&body->follower);
}

bool whole_body_start(struct whole_body *body, struct server *server, struct staged_file *stored)
{
    const bool with_sha512 = body->content_digest.has_sha512 || body->repr_digest.has_sha512;

    assert(stored != NULL && !body->failure.is_set);
    if (!byte_digests_init(&body->digests, with_sha512, false))
        return failure_no_memory(&body->failure, "hashing");
    body->follower.workers = server->workers;
    body->follower.stored = stored;
    body->follower.sink = (struct zt_sink){byte_digests_take, &body->digests};
    return true;
}

static bool check_digest(struct whole_body *body, const struct digest_field *stated,
                         const char *field)
{
    return byte_digests_agree(&body->digests, stated) ||
           failure_refuse(&body->failure, PROBLEM_DIGEST_MISMATCH,
                          "the body does not match the digest in %s", field);
}

bool whole_body_finish(struct whole_body *body)
{
    struct zt_error error;

    assert(!body->failure.is_set && !body->is_dropped);
    if (body_follower_finish(&body->follower, &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    byte_digests_finish(&body->digests);
    return check_digest(body, &body->content_digest, "Content-Digest") &&
           check_digest(body, &body->repr_digest, "Repr-Digest");
}
