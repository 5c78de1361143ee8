/* One upload, as its files share it: upload.c (the request's side), upload_hash.c, upload_finish.c, upload_publish.c.
 */
#ifndef UPLOAD_UPLOAD_STATE_H
#define UPLOAD_UPLOAD_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/conditional.h"
#include "http/digest_fields.h"
#include "http/problem.h"
#include "model/catalog.h"
#include "model/store.h"
#include "zt/digest.h"

enum upload_state { UPLOAD_RECEIVING, UPLOAD_FINISHING, UPLOAD_PUBLISHED, UPLOAD_FAILED };

/* Hashing behind the writer: by one worker at a time, never on a loop. */
struct upload_hash {
    struct job job;
    pthread_mutex_t lock; /* whoever holds it hashes */
    atomic_bool is_queued;
    atomic_uint_fast64_t hashed;
    struct zt_hasher *sha256;
    struct zt_hasher *sha512; /* only where the request states one */
    uint8_t *buffer;
};

struct upload {
    atomic_uint references; /* the request's, and one while a job is queued or runs */
    struct server *server;
    struct stored_upload *stored; /* NULL once published */
    char name[MODEL_NAME_MAX + 1];
    struct preconditions preconditions;
    struct digest_field content_digest;
    struct digest_field repr_digest;
    atomic_uint_fast64_t received;
    enum upload_state state;
    struct upload_hash hash;
    /* What validation found out, for the server not to find it out again: whose bytes, and a verdict a component (NULL
     * for a data shard). */
    bool has_identity;
    struct file_identity identity;
    unsigned char *verdicts;
    uint32_t verdict_count;
    /* FAILED, or the failure kept while the rest of the body is thrown away. */
    bool has_failed;
    bool has_given_up; /* what was stored is gone, or about to go */
    enum problem problem;
    struct zt_error error;
    /* PUBLISHED */
    bool replaced;
    uint8_t sha256[32];
    char etag[GENERATION_ETAG_SIZE]; /* empty when the file is gone again */
};

/* Keeps the first failure. Always false, so that a step can end with it. */
bool upload_fail(struct upload *upload, enum problem problem, const struct zt_error *error);
bool upload_refuse(struct upload *upload, enum problem problem, const char *message);
/* Failures of storing: no room, or anything else. */
bool upload_fail_store(struct upload *upload, const struct zt_error *error);

/* --- upload_hash.c --- */

/* False when memory is out. */
bool upload_hash_init(struct upload *upload);
void upload_hash_free(struct upload *upload);
/* Lets a worker catch up when it is worth a job. On the loop, after received grew. */
void upload_hash_follow(struct upload *upload);
/* Hashes what is left and compares with what the request stated; fills sha256. On a worker. */
bool upload_hash_finish(struct upload *upload);

/* --- upload.c --- */

void upload_hold(struct upload *upload);
/* Ends everything with the last reference. May take long: not on a loop. */
void upload_release(struct upload *upload);

/* --- upload_finish.c: on a worker, from the last byte to PUBLISHED or FAILED --- */

void upload_finish(struct upload *upload);

/* --- upload_publish.c --- */

/* Whether the request's preconditions hold for what stands under the name now (NULL: nothing). */
bool upload_preconditions_hold(const struct preconditions *preconditions, const struct generation *current);
/* Gives the file its name. extension: ".zt" and so on. */
bool upload_publish(struct upload *upload, const char *extension);

#endif
