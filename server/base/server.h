/* The parts of a running server, for code that needs several of them. They are set at startup and
 * constant afterwards, except for access, shards_by_name, draining, files_changed,
 * commits_recorded, recordings and disk_awaited_ms. */
#ifndef BASE_SERVER_H
#define BASE_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct access;
struct catalog;
struct decoded_cache;
struct kept_uploads;
struct file_hashes;
struct s3api_meta;
struct hash_queue;
struct hub_repos;
struct loop;
struct memo;
struct registry;
struct store;
struct timed_waits;
struct tls;
struct verifier;
struct workers;

struct server {
    const struct config *config;
    /* The current version, for the thread that starts and reloads the server. A request uses the
     * version under which it began (request->access). */
    struct access *access;
    struct workers *workers;
    /* For jobs that may wait for a remote store: it has many threads, so that waiting jobs do not
     * occupy all of them. NULL if the store is a folder without mirrors (server_waiters). */
    struct workers *waiters;
    struct store *store;
    struct catalog *catalog;
    struct verifier *verifier;
    struct decoded_cache *decoded;
    struct registry *registry;
    struct timed_waits *waits;
    struct kept_uploads *kept;
    struct memo *exports;      /* derived/export_plan.h */
    struct memo *manifests;    /* derived/manifest_json.h */
    struct memo *numbers_memo; /* numbers/component_numbers.h */
    struct hub_repos *hub;
    struct memo *s3_lists; /* s3/s3api_key_list.h */
    struct memo *s3_views; /* s3/s3api_view.h */
    struct hash_queue *hash_queue;
    struct file_hashes *hashes;
    struct s3api_meta *s3_meta; /* header fields of objects */
    /* Returns true once the catalog's first scan is complete. NULL (in tests) counts as true. */
    bool (*is_loaded)(const struct catalog *catalog);
    /* Is catalog_poll_changes. NULL in tests: do nothing. */
    void (*poll_changes)(struct catalog *catalog);
    struct tls *tls; /* NULL: plain HTTP */
    struct loop **loops;
    unsigned loop_count;
    /* Some clients may see only some models, so a model must not select a shard by content. */
    atomic_bool shards_by_name;
    atomic_bool draining;
    /* Number of files that this server has published at paths, or removed. */
    atomic_uint files_changed;
    /* Number of commits that this server has recorded (versions/recording.h). */
    atomic_uint commits_recorded;
    /* Number of recordings in progress, by a hash of the repository (versions/recording.h). */
    atomic_uint recordings[256];
    /* The secret in the upload addresses for Hub clients (hub/write/lfs_key.h). */
    uint8_t lfs_key[32];
    /* When an answer last had to wait for a disk (clock_coarse_ms); background reads then pause. */
    atomic_int_least64_t disk_awaited_ms;
};

/* Returns the workers for jobs that may read from the store or write to it. */
static inline struct workers *server_waiters(const struct server *server)
{
    return server->waiters != NULL ? server->waiters : server->workers;
}

#endif
