/* The store of a bucket: its structure, and the operations that read. The operations that write are
 * in store/s3_write, which also opens the store (store/s3_write/s3_open.h). */
#ifndef STORE_S3_S3_STORE_H
#define STORE_S3_S3_STORE_H

#include "cache/cache.h"
#include "config/config.h"
#include "remote/credentials.h"
#include "store/s3/bucket.h"

struct workers;
struct s3_listing; /* s3_listing.c: the entries of the last list, and the timer */
struct s3_writing; /* store/s3_write */

struct s3_store {
    struct store base;
    const struct config *config;
    struct workers *workers;
    struct remote *remote;
    struct credentials *credentials;
    struct bucket bucket;
    struct bucket claims; /* the same bucket, or a separate one for claims */
    const char *folder;   /* the cache's folder, in which the last list is saved */
    struct cache *cache;
    struct s3_listing *listing;
    struct s3_writing *writing;
};

/* Fills in the address, signer and remote of a bucket, root: "s3://bucket/prefix", with the
 * settings and the credentials of the S3 client. Sends no request to the bucket. Returns
 * ZT_ARGUMENT with a one-line message. The caller frees signer and *out_credentials, also on
 * failure, after remote_stop. */
enum zt_status s3_bucket_open(const struct config *config, const char *root, struct remote *remote,
                              struct bucket *out_bucket, struct credentials **out_credentials,
                              struct zt_error *error);
/* Returns the file of the authorities that may certify the service; NULL: the system's. */
const char *s3_ca_file(const struct config *config);

/* Connects, once config and folder are set: address, region, credentials, bucket. Returns
 * ZT_ARGUMENT with a one-line message if the credentials, clock, region or bucket are wrong; ZT_OK
 * also if the store is away. */
enum zt_status s3_connect(struct s3_store *store, struct zt_error *error);
/* Stops requests in progress. Call it after all sources are closed and before the cache is closed;
 * also after s3_connect has failed. */
void s3_disconnect(struct s3_store *store);

/* Fills in another bucket of the same service, for claims. */
void s3_other_bucket(const struct s3_store *store, const char *name, struct bucket *out_bucket);

/* Operations of store.h. */
enum zt_status s3_list(struct store *store, store_visit visit, void *context,
                       struct zt_error *error);
enum zt_status s3_walk(struct store *store, const char *folder, bool is_deep, store_visit visit,
                       void *context, struct zt_error *error);
enum zt_status s3_open_file(struct store *store, const char *path, struct zt_source **out_source,
                            struct file_identity *out_identity, struct zt_error *error);
/* Opens an object of our own whose bytes never change, in any version. */
enum zt_status s3_open_object(struct s3_store *store, const char *key,
                              const struct object_version *version, struct zt_source **out_source,
                              struct zt_error *error);
bool s3_identity_of(struct store *store, struct zt_source *source,
                    struct file_identity *out_identity);
size_t s3_misnamed_files(const struct store *store);
int s3_watch(struct store *store);
bool s3_changed(struct store *store);
bool s3_is_changing(struct store *store);
bool s3_reports(const struct store *store);
enum zt_status s3_list_changes(struct store *store, store_visit visit, void *context,
                               bool *out_whole, struct zt_error *error);
bool s3_may_look_up(struct store *store, struct zt_text name);
enum zt_status s3_look_up(struct store *store, struct zt_text name, store_visit visit,
                          void *context, struct zt_error *error);
enum zt_status s3_read_fact(struct store *store, const struct file_identity *identity,
                            const char *kind, char **out_text, size_t *out_length,
                            struct zt_error *error);
enum zt_status s3_find_sha256(struct store *store, const char *path,
                              const struct file_identity *identity, uint8_t out_sha256[32],
                              struct zt_error *error);
/* Returns true if the bucket had this file, a model's or "folder/config.json", when it was last
 * listed, or if this server has written it since. Never waits. */
bool s3_has_config(struct s3_store *store, const char *path);
void s3_report(struct store *store, struct store_report *out_report);

/* Called by writers: notes the current version of a path (NULL: none), from the response to a HEAD,
 * a PUT or a list. */
void s3_note_version(struct s3_store *store, const char *path,
                     const struct object_version *version);
/* Returns the known version of a path. Returns false if there is none. */
bool s3_known_version(struct s3_store *store, const char *path, struct object_version *out);
/* The key of a fact about a version, which s3_read_fact reads: the prefix, S3_FACT_ID_LENGTH hex
 * digits for the version, a dot, and the kind. */
#define S3_FACTS_PREFIX   ".ztserve/facts/"
#define S3_FACT_ID_LENGTH 32
#define S3_FACT_KEY_SIZE  128
void s3_fact_key(const struct file_identity *identity, const char *kind,
                 char out_key[S3_FACT_KEY_SIZE]);
/* Computes the cache's key for a version. */
void s3_cache_key(const struct s3_store *store, const char *path,
                  const struct file_identity *identity, uint8_t out_key[CACHE_KEY_BYTES]);

#endif
