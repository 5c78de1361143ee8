/* The store of a bucket: its structure, and the operations that read. Those that write are in
 * store/s3_write, which also opens the store (store/s3_write/s3_open.h). */
#ifndef STORE_S3_S3_STORE_H
#define STORE_S3_S3_STORE_H

#include "cache/cache.h"
#include "config/config.h"
#include "remote/credentials.h"
#include "store/s3/bucket.h"

struct workers;
struct s3_listing; /* s3_list.c: what the last list said, and the timer */
struct s3_writing; /* store/s3_write */

struct s3_store {
    struct store base;
    const struct config *config;
    struct workers *workers;
    struct remote *remote;
    struct credentials *credentials;
    struct bucket bucket;
    struct bucket claims; /* the same, or the claims' bucket */
    const char *folder;   /* of the cache; the last list is kept in it */
    struct cache *cache;
    struct s3_listing *listing;
    struct s3_writing *writing;
};

/* Connects: address, region, credentials, the bucket; config and folder are set. ZT_ARGUMENT with
 * one line that says which of them is wrong (credentials, clock, region, bucket); ZT_OK also if the
 * store is away. */
enum zt_status s3_connect(struct s3_store *store, struct zt_error *error);
/* Ends what is on its way. After all sources are closed, and before the cache is. Also after a
 * failure of s3_connect. */
void s3_disconnect(struct s3_store *store);

/* Fills a bucket of the same service: the claims'. */
void s3_other_bucket(const struct s3_store *store, const char *name, struct bucket *out_bucket);

/* Operations of store.h. */
enum zt_status s3_list(struct store *store,
                       bool (*visit)(void *context, const char *path,
                                     const struct file_identity *identity),
                       void *context, struct zt_error *error);
enum zt_status s3_walk(struct store *store, const char *folder, bool is_deep,
                       bool (*visit)(void *context, const char *path,
                                     const struct file_identity *identity),
                       void *context, struct zt_error *error);
enum zt_status s3_open_file(struct store *store, const char *path, struct zt_source **out_source,
                            struct file_identity *out_identity, struct zt_error *error);
bool s3_identity_of(struct store *store, struct zt_source *source,
                    struct file_identity *out_identity);
size_t s3_misfits(const struct store *store);
int s3_watch(struct store *store);
bool s3_changed(struct store *store);
bool s3_is_changing(struct store *store);
bool s3_reports(const struct store *store);
enum zt_status s3_look(struct store *store,
                       bool (*visit)(void *context, const char *path,
                                     const struct file_identity *identity),
                       void *context, bool *out_whole, struct zt_error *error);
bool s3_may_seek(struct store *store, struct zt_text name);
enum zt_status s3_seek(struct store *store, struct zt_text name,
                       bool (*visit)(void *context, const char *path,
                                     const struct file_identity *identity),
                       void *context, struct zt_error *error);
enum zt_status s3_read_fact(struct store *store, const struct file_identity *identity,
                            const char *kind, char **out_text, size_t *out_length,
                            struct zt_error *error);
void s3_report(struct store *store, struct store_report *out_report);

/* For writers: what a path holds now is this version (NULL: nothing), as a HEAD, a PUT or a list
 * has just said. */
void s3_note_version(struct s3_store *store, const char *path,
                     const struct object_version *version);
/* The version that is known of a path. False: none. */
bool s3_known_version(struct s3_store *store, const char *path, struct object_version *out);
/* The key of a fact about a version: where s3_read_fact looks. The prefix, S3_FACT_ID_LENGTH hex
 * digits for the version, a dot, and the kind. */
#define S3_FACTS_PREFIX   ".ztserve/facts/"
#define S3_FACT_ID_LENGTH 32
#define S3_FACT_KEY_SIZE  128
void s3_fact_key(const struct file_identity *identity, const char *kind,
                 char out_key[S3_FACT_KEY_SIZE]);
/* The key of the version in the cache. */
void s3_cache_key(const struct s3_store *store, const char *path,
                  const struct file_identity *identity, uint8_t out_key[CACHE_KEY_BYTES]);

#endif
