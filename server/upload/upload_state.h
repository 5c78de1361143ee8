/* One upload of a whole file, as its files share it: upload.c (the request's side) and upload_hash.c. */
#ifndef UPLOAD_UPLOAD_STATE_H
#define UPLOAD_UPLOAD_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/digest_fields.h"
#include "http/problem.h"
#include "model/catalog.h"
#include "model/store.h"
#include "upload/publication.h"
#include "upload/registry.h"
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
    char name[MODEL_NAME_MAX + 1];
    struct publication publication; /* stored is NULL once it is published */
    struct digest_field content_digest;
    struct digest_field repr_digest;
    struct registry_entry entry;
    bool is_registered;
    atomic_uint_fast64_t received;
    enum upload_state state;
    struct upload_hash hash;
    /* FAILED, or the failure kept while the rest of the body is thrown away. */
    bool has_failed;
    bool has_given_up; /* what was stored is gone, or about to go */
    enum problem problem;
    struct zt_error error;
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
/* Hashes what is left and compares with what the request stated; fills the publication's sha256. On a worker. */
bool upload_hash_finish(struct upload *upload);

/* --- upload.c --- */

void upload_hold(struct upload *upload);
/* Ends everything with the last reference. May take long: not on a loop. */
void upload_release(struct upload *upload);

#endif
