/* Writing to a bucket: what the files of this room share.
 *
 * Uploads are staged in a local folder. A publication claims the model's name by an object that is
 * made conditionally (.ztserve/claims/), compares what is there with what its request expects, and
 * then writes the model's object in one step. docs/decisions/publication-to-a-bucket.md says
 * why. */
#ifndef STORE_S3_WRITE_S3_WRITE_H
#define STORE_S3_WRITE_S3_WRITE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/s3/s3_store.h"

/* Keys of our own, relative to the prefix; they name no models. */
#define S3_CLAIMS_PREFIX ".ztserve/claims/"
#define S3_PROBES_PREFIX ".ztserve/probe/"

/* 32 hex digits, NUL. */
#define S3_NONCE_SIZE 33
/* 64 hex digits, NUL. */
#define S3_SHA256_SIZE 65
/* A model's name, an extension, NUL. */
#define S3_KEY_SIZE MODEL_PATH_SIZE

/* A claim older than this by the service's clock belongs to a dead writer, and may be taken
 * over. */
#define S3_CLAIM_DEAD_S 60
/* A writer does nothing under a claim that is older than this by its own clock: what it begins
 * before has the rest of the minute to arrive. */
#define S3_CLAIM_GOOD_MS 45000
/* An older claim is renewed before anything is begun under it, and while something goes on. */
#define S3_CLAIM_FRESH_MS 15000
/* The last of the time of a claim's holder is for finding out what a request did that was not
 * answered, and for the release. */
#define S3_SETTLE_MS 5000

enum s3_mode {
    S3_MODE_UNKNOWN, /* the store was not reached yet */
    S3_MODE_CLAIMS,
    S3_MODE_ALONE, /* s3.single_writer: there is nobody to keep out */
    S3_MODE_REFUSED
};

/* Conditions that the models' bucket was seen to honour. */
struct s3_abilities {
    bool put;                /* If-None-Match: * and If-Match of a PUT */
    bool complete_if_absent; /* the same of the completion of a multipart upload */
    bool complete_if_version;
};

struct zt_hasher;
struct s3_multipart; /* s3_multipart.c: an upload whose parts are in the bucket */

struct s3_writing {
    char *cache_folder;
    struct store *staging; /* a folder; NULL: no uploads */
    int journal;           /* a descriptor of the folder of multipart uploads; -1: none */
    atomic_int mode;       /* enum s3_mode; constant once known, like the next two */
    struct s3_abilities abilities;
    char writes[256]; /* of the report; the refusal, if that is the mode */
    pthread_mutex_t lock;
    pthread_cond_t changed;        /* for the keeper */
    struct s3_claim *claims;       /* those of this process */
    struct s3_claim *left_claims;  /* to be removed by the keeper */
    struct s3_multipart *unwanted; /* to be aborted by the keeper */
    pthread_t keeper;
    bool has_keeper;
    bool is_called; /* something is unwanted */
    bool is_ending;
};

/* --- s3_stage.c: uploads before their publication --- */

struct s3_upload {
    struct stored_upload base;
    struct stored_upload *staged;
    /* Set by s3_prepare. */
    bool is_prepared;
    char path[S3_KEY_SIZE];
    char sha256[S3_SHA256_SIZE];
    uint64_t length;
    struct s3_multipart *multipart; /* NULL: one PUT will do */
};

static inline struct s3_upload *s3_upload_of(struct stored_upload *upload)
{
    return (struct s3_upload *)upload;
}

static inline struct s3_store *s3_store_of(const struct s3_upload *upload)
{
    return (struct s3_store *)upload->base.store;
}

/* Operations of store.h. */
enum zt_status s3_create(struct store *store, uint64_t expected_bytes,
                         struct stored_upload **out_upload, struct zt_error *error);
enum zt_status s3_write_at(struct stored_upload *upload, uint64_t offset, const void *bytes,
                           size_t length, struct zt_error *error);
enum zt_status s3_read_back(struct stored_upload *upload, struct zt_source **out_source,
                            struct zt_error *error);
void s3_abandon(struct stored_upload *upload);
enum zt_status s3_space(const struct store *store, uint64_t *out_bytes, struct zt_error *error);
void s3_set_reserve(struct store *store, uint64_t reserve_bytes);
enum zt_status s3_keep(struct store *store, const char *id, struct zt_error *error);
enum zt_status s3_kept_create(struct store *store, const char *id, const char *name,
                              uint64_t expected_bytes, struct stored_upload **out_upload,
                              struct zt_error *error);
enum zt_status s3_kept_open(struct store *store, const char *id, const char *name,
                            struct stored_upload **out_upload, struct zt_error *error);
enum zt_status s3_kept_remove(struct store *store, const char *id, const char *name,
                              struct zt_error *error);
enum zt_status s3_kept_drop(struct store *store, const char *id, struct zt_error *error);
enum zt_status s3_kept_list(struct store *store, bool (*visit)(void *context, const char *id),
                            void *context, struct zt_error *error);
enum zt_status s3_sync(struct stored_upload *upload, struct zt_error *error);
enum zt_status s3_truncate(struct stored_upload *upload, uint64_t length, struct zt_error *error);
enum zt_status s3_copy(struct stored_upload *from, uint64_t from_offset, struct stored_upload *to,
                       uint64_t to_offset, uint64_t length, struct zt_error *error);
bool s3_discard(struct stored_upload *upload, uint64_t offset, uint64_t length);
uint64_t s3_length(struct stored_upload *upload);

/* Ends an upload that was published: its file goes to the cache as the bytes of that version. */
void s3_upload_end(struct s3_upload *upload, const struct file_identity *identity);

/* --- s3_claim.c --- */

struct s3_claim {
    struct store_claim base;
    struct s3_store *store;
    struct s3_claim *next;
    char name[MODEL_NAME_MAX + 1];
    bool has_object; /* false in S3_MODE_ALONE */
    char key[sizeof(S3_CLAIMS_PREFIX) + S3_NONCE_SIZE];
    char nonce[S3_NONCE_SIZE];
    char etag[BUCKET_ETAG_SIZE];
    int64_t since_ms; /* monotonic, from before the request that made it */
    /* When all requests under it have to be answered; BUCKET_USUAL_TIME: nobody waits. */
    int64_t by_ms;
    /* An unconditional request may still be done: it is nobody else's turn before the claim is a
     * dead writer's. */
    bool stays;
};

/* The same for a request that changes something, whose outcome may have to be looked at. */
static inline int64_t s3_claim_write_by(const struct s3_claim *claim)
{
    return claim->by_ms == BUCKET_USUAL_TIME ? BUCKET_USUAL_TIME : claim->by_ms - S3_SETTLE_MS;
}

/* For a request that takes longer than small ones do. */
static inline void s3_claim_extend(struct s3_claim *claim, uint64_t ms)
{
    if (claim->by_ms != BUCKET_USUAL_TIME)
        claim->by_ms += (int64_t)ms;
}

/* Operations of store.h. */
enum zt_status s3_claim(struct store *store, struct zt_text name, int64_t by_ms,
                        struct store_claim **out_claim, struct zt_error *error);
void s3_release(struct store_claim *claim);

/* The claim under which this process may write a path; NULL: none. */
struct s3_claim *s3_claim_of(struct s3_store *store, const char *path);
/* Runs an exchange of the models' bucket, and keeps the claim fresh meanwhile. Repeats it until
 * s3_claim_write_by if that may help, but only while the claim is certainly ours. Returns what
 * bucket_judge says of the last try; or ZT_UNAVAILABLE with exchange->tried 0: the claim was lost,
 * or the time over, before the first. */
enum zt_status s3_claim_run(struct s3_claim *claim, struct remote_exchange *exchange,
                            struct zt_error *error);

/* --- s3_claim_object.c --- */

/* The key, from the store and the name. */
enum zt_status s3_claim_set_key(struct s3_claim *claim, struct zt_error *error);
/* Makes the object, with the claim's nonce; waits for another writer's. ZT_ARGUMENT: in vain;
 * ZT_UNAVAILABLE. */
enum zt_status s3_claim_take(struct s3_claim *claim, struct zt_error *error);
/* Renews it unless it is fresh. ZT_UNAVAILABLE: that failed, or another writer has it. */
enum zt_status s3_claim_refresh(struct s3_claim *claim, struct zt_error *error);
/* ZT_UNAVAILABLE: it is too old for anything to be begun under it. */
enum zt_status s3_claim_check(const struct s3_claim *claim, struct zt_error *error);
/* Removes it, if it certainly is one's own. */
void s3_claim_drop(struct s3_claim *claim);
/* The same of one of which it is not known whether it is there. False: it may be, or come yet. */
bool s3_claim_clear(struct s3_claim *claim);

/* Removes the objects of dead writers. */
void s3_claims_sweep(struct s3_store *store);

void s3_nonce(char out_nonce[S3_NONCE_SIZE]);

/* --- s3_hash.c: SHA-256 in hex --- */

enum zt_status s3_hash_bytes(const void *bytes, size_t length, char out_hex[S3_SHA256_SIZE],
                             struct zt_error *error);
/* Of a part of a file. ZT_IO also if the file is shorter. */
enum zt_status s3_hash_range(int descriptor, uint64_t from, uint64_t length,
                             char out_hex[S3_SHA256_SIZE], struct zt_error *error);
/* The same of the next part of a whole, which is hashed too. */
enum zt_status s3_hash_part(int descriptor, uint64_t from, uint64_t length, struct zt_hasher *whole,
                            char out_hex[S3_SHA256_SIZE], struct zt_error *error);
/* Whether all its parts together have this SHA-256: ZT_OK or ZT_IO. */
enum zt_status s3_hash_end(struct zt_hasher *whole, const char *sha256, struct zt_error *error);
void s3_hex(const uint8_t *bytes, size_t length, char *out_hex);

/* --- s3_probe.c --- */

/* Finds out what the service honours, and sets mode, abilities and writes. ZT_UNAVAILABLE: not
 * now. On one thread at a time. */
enum zt_status s3_probe(struct s3_store *store, struct zt_error *error);
/* Removes the keys of probes that did not end. */
void s3_probes_sweep(struct s3_store *store);

/* --- s3_publish.c: operations of store.h --- */

enum zt_status s3_prepare(struct stored_upload *upload, const char *path, const uint8_t sha256[32],
                          struct zt_error *error);
enum zt_status s3_publish(struct stored_upload *upload, const char *path,
                          const struct store_expected *expected, struct zt_error *error);
enum zt_status s3_remove(struct store *store, const char *path,
                         const struct store_expected *expected, struct zt_error *error);

/* --- s3_keeper.c: a thread for what nobody waits for --- */

/* Takes over the multipart uploads that an earlier process left. Before any is begun. */
void s3_keeper_take_over(struct s3_store *store);
/* Probes once the store is there, aborts unwanted multipart uploads, sweeps. False: no thread. */
bool s3_keeper_start(struct s3_store *store);
void s3_keeper_stop(struct s3_store *store);
/* Takes over a multipart upload that nobody needs any more (or NULL). Never waits. */
void s3_keeper_abort(struct s3_store *store, struct s3_multipart *multipart);
/* Takes over a claim that there was no time to remove, or that may have been made. Never waits. */
void s3_keeper_clear(struct s3_store *store, struct s3_claim *claim);

/* --- s3_fact.c: an operation of store.h --- */

enum zt_status s3_write_fact(struct store *store, const struct file_identity *identity,
                             const char *kind, const char *text, size_t length,
                             struct zt_error *error);
/* Removes facts about versions that no object of the bucket has any more. */
void s3_facts_sweep(struct s3_store *store);

#endif
