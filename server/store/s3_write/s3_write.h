/* Writing to a bucket: shared by the files of this room.
 *
 * Uploads are staged in a local folder. To publish, a writer claims the model's name by creating an
 * object conditionally (.ztserve/claims/), checks that the bucket has the version that the request
 * expects, and then writes the model's object in one step. For the reasons, see
 * docs/internals/decisions/publication-to-a-bucket.md. */
#ifndef STORE_S3_WRITE_S3_WRITE_H
#define STORE_S3_WRITE_S3_WRITE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "store/s3/s3_store.h"
#include "store/staging.h"

/* Our own keys, relative to the prefix. They are not models' names. */
#define S3_CLAIMS_PREFIX ".ztserve/claims/"
#define S3_PROBES_PREFIX ".ztserve/probe/"

/* 32 hex digits and NUL. */
#define S3_NONCE_SIZE 33
/* A model's name, an extension and NUL. */
#define S3_KEY_SIZE MODEL_PATH_SIZE

/* A claim older than this by the service's clock belongs to a dead writer, and other writers may
 * take it over. */
#define S3_CLAIM_DEAD_S 60
/* A writer begins nothing under a claim older than this by its own clock. The rest of the minute is
 * for its requests to arrive. */
#define S3_CLAIM_GOOD_MS 45000
/* A claim older than this is renewed before a request begins under it, and during long requests. */
#define S3_CLAIM_FRESH_MS 15000
/* Reserved at the end of a claim holder's time, to find out the effect of a request without a
 * response, and to release the claim. */
#define S3_SETTLE_MS 5000

enum s3_mode {
    S3_MODE_UNKNOWN, /* the store has not been reached yet */
    S3_MODE_CLAIMS,
    S3_MODE_ALONE, /* s3.single_writer: there are no other writers to exclude */
    S3_MODE_REFUSED
};

/* Conditions that the models' bucket honours, as the probe found. */
struct s3_abilities {
    bool put;                /* PUT with If-None-Match: * and with If-Match */
    bool complete_if_absent; /* completion of a multipart upload with If-None-Match: * */
    bool complete_if_version;
};

struct zt_hasher;
struct s3_multipart; /* s3_multipart.c: an upload whose parts are in the bucket */

struct s3_writing {
    char *cache_folder;
    struct staging staging; /* in staging_folder */
    int staging_folder;     /* -1: no uploads */
    int journal;            /* the folder of the multipart uploads' journal; -1: none */
    atomic_int mode;        /* enum s3_mode; like the next two, constant once known */
    struct s3_abilities abilities;
    char writes[256]; /* for the report; the refusal if uploads are impossible */
    pthread_mutex_t lock;
    pthread_cond_t changed;        /* wakes the keeper */
    struct s3_claim *claims;       /* held by this process */
    struct s3_claim *left_claims;  /* the keeper removes these */
    struct s3_multipart *unwanted; /* the keeper aborts these */
    pthread_t keeper;
    bool has_keeper;
    bool is_called; /* the keeper has work */
    bool is_ending;
};

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
    int64_t since_ms; /* monotonic clock, before the request that created it */
    /* The deadline of all requests under it. BUCKET_USUAL_TIME: no deadline. */
    int64_t by_ms;
    /* An unconditional request may still be carried out. The claim is therefore kept until it
     * counts as a dead writer's, so that no other writer starts before. */
    bool stays;
    /* A thread of store/s3_versions renews some claims. It changes since_ms, etag and nonce under
     * its lock. */
    struct s3_claim *next_renewed;
    bool is_renewing;
    bool is_lost;
};

/* The deadline for a request that changes something: it leaves time to check the outcome. */
static inline int64_t s3_claim_write_by(const struct s3_claim *claim)
{
    return claim->by_ms == BUCKET_USUAL_TIME ? BUCKET_USUAL_TIME : claim->by_ms - S3_SETTLE_MS;
}

/* Extends the deadline for a request that takes longer than a small one. */
static inline void s3_claim_extend(struct s3_claim *claim, uint64_t ms)
{
    if (claim->by_ms != BUCKET_USUAL_TIME)
        claim->by_ms += (int64_t)ms;
}

/* Claims a name without looking up its files, and waits for another writer for at most wait_ms.
 * Otherwise the same as s3_claim. */
enum zt_status s3_claim_name(struct s3_store *store, struct zt_text name, int64_t by_ms,
                             int64_t wait_ms, struct s3_claim **out_claim, struct zt_error *error);

/* Operations of store.h. */
enum zt_status s3_claim(struct store *store, struct zt_text name, int64_t by_ms,
                        struct store_claim **out_claim, struct zt_error *error);
void s3_release(struct store_claim *claim);

/* Returns the claim under which this process may write a path, or NULL. */
struct s3_claim *s3_claim_of(struct s3_store *store, const char *path);
/* Runs an exchange with the models' bucket, and renews the claim during it. Retries until
 * s3_claim_write_by if that may help, but only while the claim is certainly ours; exchange->tries
 * limits the tries. Returns the
 * judgement of the last try (bucket_judge), or ZT_UNAVAILABLE with exchange->tried 0 if the claim
 * was lost, or the time was over, before the first. */
enum zt_status s3_claim_run(struct s3_claim *claim, struct remote_exchange *exchange,
                            struct zt_error *error);

/* --- s3_claim_object.c --- */

/* Computes the key from the store and the name. */
enum zt_status s3_claim_set_key(struct s3_claim *claim, struct zt_error *error);
/* Creates the claim's object with the claim's nonce, waiting for another writer if necessary.
 * Returns ZT_ARGUMENT if the other writer did not finish in time; ZT_UNAVAILABLE. */
enum zt_status s3_claim_take(struct s3_claim *claim, int64_t wait_ms, struct zt_error *error);
/* Renews the claim unless it is fresh. Returns ZT_UNAVAILABLE if that failed, or another writer has
 * taken it. */
enum zt_status s3_claim_refresh(struct s3_claim *claim, struct zt_error *error);
/* Returns ZT_UNAVAILABLE if the claim is too old to begin a request under it. */
enum zt_status s3_claim_check(const struct s3_claim *claim, struct zt_error *error);
/* Removes the claim's object if it is certainly ours. */
void s3_claim_drop(struct s3_claim *claim);
/* Removes a claim's object that may or may not exist. Returns false if it may still exist or appear
 * later. */
bool s3_claim_clear(struct s3_claim *claim);

/* Removes dead writers' claims. */
void s3_claims_sweep(struct s3_store *store);

void s3_nonce(char out_nonce[S3_NONCE_SIZE]);

/* --- s3_hash.c: SHA-256 in hex --- */

/* Hashes part of a file, and adds it to the hash of the whole file (NULL: only the part). Returns
 * ZT_IO also if the file is shorter. */
enum zt_status s3_hash_part(int descriptor, uint64_t from, uint64_t length, struct zt_hasher *whole,
                            char out_hex[BUCKET_SHA256_SIZE], struct zt_error *error);
/* Returns ZT_OK if all parts together have this SHA-256; otherwise ZT_IO. */
enum zt_status s3_hash_end(struct zt_hasher *whole, const char *sha256, struct zt_error *error);

/* --- s3_probe.c --- */

/* Finds out which features the service supports, and sets mode, abilities and writes. Logs writes,
 * as an error if uploads are impossible. Returns ZT_UNAVAILABLE if the store is away. Call it from
 * one thread only. */
enum zt_status s3_probe(struct s3_store *store, struct zt_error *error);
/* Sets the mode and its explanation, once, and logs it. */
void s3_mode_settle(struct s3_writing *writing, enum s3_mode mode, enum log_level level,
                    const char *words);
/* Returns a sentence for /readyz and the log: how uploads are published, or why they are not. */
const char *s3_mode_words(const struct s3_writing *writing);
/* Removes the keys of interrupted probes. */
void s3_probes_sweep(struct s3_store *store);

/* --- s3_publish.c: operations of store.h --- */

enum zt_status s3_prepare(struct store *store, struct staged_file *file, const char *path,
                          const uint8_t sha256[32], struct zt_error *error);
enum zt_status s3_publish(struct store *store, struct staged_file *file, const char *path,
                          const struct store_expected *expected, struct zt_error *error);
enum zt_status s3_remove(struct store *store, const char *path,
                         const struct store_expected *expected, struct zt_error *error);

/* --- s3_copy.c --- */

/* A copy of an object of the bucket, which the service makes. */
struct s3_copy {
    const char *from;
    const char *etag; /* of the version to copy */
    uint64_t size_bytes;
    const char *to;
    const char *sha256;         /* stored with the copy, hex */
    struct s3_multipart *parts; /* copied by s3_copy_prepare; NULL: one request is enough */
    bool is_unknown; /* there was no response, so the copy may still be made at any time */
};

/* Does the slow part of copying a large object, before a claim. *copy has no parts yet. Fails like
 * s3_copy_run. */
enum zt_status s3_copy_prepare(struct s3_store *store, struct s3_copy *copy,
                               struct zt_error *error);
/* Makes the copy under a claim, which is extended and renewed meanwhile. Some services ignore the
 * version, so the caller must check what is there afterwards. Returns ZT_NOT_FOUND, ZT_STALE,
 * ZT_UNAVAILABLE, ZT_LIMIT or ZT_NO_MEMORY. */
enum zt_status s3_copy_run(struct s3_claim *claim, struct s3_copy *copy, struct zt_error *error);
/* Call it at the end in every case. */
void s3_copy_end(struct s3_store *store, struct s3_copy *copy);

/* --- s3_shared.c: operations of store.h --- */

extern const struct store_shared_ops s3_shared_ops;

struct s3_parts; /* s3_multipart.h */

/* Sends a file in one request or in parts, and replaces the object of its key. Fails like keep of
 * these operations. */
enum zt_status s3_send_file(struct s3_store *store, const struct s3_parts *parts,
                            struct zt_error *error);

/* --- s3_keeper.c: a thread for background work --- */

/* Takes over the multipart uploads that an earlier process left. Call it before any is begun. */
void s3_keeper_take_over(struct s3_store *store);
/* Starts a thread that probes the store once it responds, aborts unwanted multipart uploads, and
 * sweeps. Returns false if there is no thread. */
bool s3_keeper_start(struct s3_store *store);
void s3_keeper_stop(struct s3_store *store);
/* Takes over a multipart upload that is no longer needed (or NULL). Never waits. */
void s3_keeper_abort(struct s3_store *store, struct s3_multipart *multipart);
/* Takes over a claim that could not be removed in time, or that may have been created. Never
 * waits. */
void s3_keeper_clear(struct s3_store *store, struct s3_claim *claim);

/* --- s3_fact.c: an operation of store.h --- */

enum zt_status s3_write_fact(struct store *store, const struct file_identity *identity,
                             const char *kind, const char *text, size_t length,
                             struct zt_error *error);
/* Removes facts about versions that no object of the bucket has any more. */
void s3_facts_sweep(struct s3_store *store);

#endif
