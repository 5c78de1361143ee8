/* The parts of a running server, for code that needs more than one of them. Filled at start and
 * constant from then on, except for access, shards_by_name, draining, files_changed and
 * disk_awaited_ms. */
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
struct digest_memory;
struct digest_queue;
struct export_cache;
struct file_hashes;
struct finding_cache;
struct hub_repos;
struct loop;
struct registry;
struct store;
struct tls;
struct verifier;
struct workers;

struct server {
    const struct config *config;
    /* The version in force, for the thread that starts and reloads the server. A request has the
     * one under which it began (request->access). */
    struct access *access;
    struct workers *workers;
    /* For jobs that may wait for a store that is elsewhere: many threads, so that those that wait
     * leave some to others. NULL if the store is a folder (server_waiters). */
    struct workers *waiters;
    struct store *store;
    struct catalog *catalog;
    struct verifier *verifier;
    struct decoded_cache *decoded;
    struct registry *registry;
    struct kept_uploads *kept;
    struct export_cache *exports;
    struct finding_cache *findings;
    struct hub_repos *hub;
    struct digest_memory *digests;
    struct file_hashes *hashes;
    struct digest_queue *digest_queue;
    /* Whether the catalog's first scan has ended. NULL (in tests) counts as true. */
    bool (*is_loaded)(const struct catalog *catalog);
    /* catalog_heed. NULL (in tests): nothing is to be heeded. */
    void (*heed)(struct catalog *catalog);
    struct tls *tls; /* NULL: plain HTTP */
    struct loop **loops;
    unsigned loop_count;
    /* Some clients may see only some models, so a model may not choose a shard by its content. */
    atomic_bool shards_by_name;
    atomic_bool draining;
    /* How many files this server has published at paths, or removed. */
    atomic_uint files_changed;
    /* The secret of the addresses for uploads that the Hub's clients get (hub/write/lfs_key.h). */
    uint8_t lfs_key[32];
    /* When an answer last had to wait for a disk (clock_coarse_ms): background work that reads
     * gives way to it. */
    atomic_int_least64_t disk_awaited_ms;
};

/* The workers for what may read from the store, or write to it. */
static inline struct workers *server_waiters(const struct server *server)
{
    return server->waiters != NULL ? server->waiters : server->workers;
}

#endif
