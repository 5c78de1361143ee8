/* The block cache: files that lie elsewhere, kept in a local folder in blocks of 1 MiB.
 *
 * One version of a remote file is one sparse file of the same length, and an index of the blocks
 * that are in it, with their XXH3. After a start a block is only claimed until it has matched its
 * checksum once: what a crash leaves may be zeros. Least recently used extents of 64 MiB are
 * punched out when room is needed, except those that are pinned.
 *
 * A folder that is full, read-only, gone or corrupt costs fetches, never a wrong byte, never an
 * error. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/source.h"

#define CACHE_BLOCK_BYTES  ((uint64_t)1 << 20)
#define CACHE_EXTENT_BYTES ((uint64_t)64 << 20)
/* The most that is fetched as one run, and the most that is on its way for reading ahead. */
#define CACHE_RUN_BYTES   ((uint64_t)8 << 20)
#define CACHE_AHEAD_BYTES ((uint64_t)64 << 20)
#define CACHE_KEY_BYTES   16
/* Longer than any service keeps: what claims to be longer is not opened. */
#define CACHE_FILE_BYTES_MOST ((uint64_t)64 << 40)

struct cache;
struct workers;

/* Bytes on their way, of one run of whole blocks (the file's last may be shorter). The cache's;
 * bytes stays valid until done. */
struct cache_fetch {
    uint64_t offset;
    uint64_t length;
    uint8_t *bytes;
    bool is_urgent; /* somebody waits for it */
    /* May be called before done, one call after another, with the number of bytes that have arrived
     * at the beginning of bytes. Readers may have them from then on: they must be bytes of this
     * version, and are not to be written again. Never waits. */
    void (*arrived)(struct cache_fetch *fetch, uint64_t length);
    /* Called once, from any thread; never waits. error may be NULL if status is ZT_OK. */
    void (*done)(struct cache_fetch *fetch, enum zt_status status, const struct zt_error *error);
};

/* Where absent bytes come from; embedded in its owner's structure. */
struct cache_origin {
    /* Begins to fill fetch->bytes; calls done exactly once, perhaps before it returns. ZT_OK: all
     * bytes are there, and are those of this version. ZT_STALE: this version cannot be had any
     * more. ZT_UNAVAILABLE: not now. Any thread. */
    void (*fetch)(struct cache_origin *origin, struct cache_fetch *fetch);
    /* After the source was closed and the last fetch is done. */
    void (*close)(struct cache_origin *origin);
};

struct cache_options {
    const char *folder;
    uint64_t max_bytes;      /* 0: as much as leaves the reserve free */
    struct workers *workers; /* for what takes time, such as punching */
};

/* Opens or makes the folder, which only one process may own (a lock); blocks that an earlier
 * process left are claimed. ZT_IO with a message for the person who starts the program if another
 * process owns it. A folder that cannot be made or written to is not a failure: then nothing is
 * kept (a warning in the log). */
enum zt_status cache_open(const struct cache_options *options, struct cache **out_cache,
                          struct zt_error *error);
/* After all its sources are closed. Takes NULL. */
void cache_close(struct cache *cache);

/* Opens a file of the cache as a source (with read_at, pin, advise and await of zt/source.h;
 * neither map nor descriptor). key: of the version (bucket, key, identity). Several sources of
 * one key share the blocks. origin is taken over, also on failure. ZT_NO_MEMORY; ZT_LIMIT: it is
 * longer than CACHE_FILE_BYTES_MOST. */
enum zt_status cache_file_open(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES],
                               uint64_t size_bytes, struct cache_origin *origin,
                               struct zt_source **out_source, struct zt_error *error);

/* The bytes of a version that this machine has in a local file, which is closed or taken over: they
 * need not be fetched. Failing is harmless. */
void cache_adopt(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES], int descriptor,
                 uint64_t size_bytes);

/* Whether nothing can be had from a source of the cache any more, because the store gave other
 * bytes than before for the same version. */
bool cache_has_lost(const struct zt_source *source);

/* --- for the check of a whole file; all take sources of cache_file_open --- */

/* Reads bytes that will not change any more: a later fetch of the same block must return the
 * same ones. Fetches nothing; may wait for a disk. Returns how many there are from offset on, at
 * most length. */
size_t cache_read_settled(struct zt_source *source, uint64_t offset, void *buffer, size_t length);

/* Wakes the waiter once the bytes at offset are settled, or cannot be had. Without fetch the
 * origin is not asked; returns false, and never wakes, if the bytes are not coming. Never waits. */
bool cache_await_settled(struct zt_source *source, uint64_t offset, uint64_t length, bool fetch,
                         struct zt_source_waiter *waiter);

/* Returns true if the block at offset was settled, whether it is here or not. */
bool cache_is_settled(const struct zt_source *source, uint64_t offset);

/* Returns true if no block is missing. Some may have to be written, or compared with their
 * checksums, before they can be pinned. */
bool cache_has_all(const struct zt_source *source);

/* How many bytes are here. */
uint64_t cache_bytes_here(const struct zt_source *source);

#define CACHE_PROOF_BYTES 16
/* A name of the settled bytes of the whole file; equal names mean equal bytes as far as XXH3 can
 * tell. Returns false if not all blocks were settled. */
bool cache_proof(struct zt_source *source, uint8_t out_proof[CACHE_PROOF_BYTES]);

/* Compares the local copy of a range with its checksums again before it is next read. Unlike
 * invalidate of zt/source.h it keeps the checksums, so the bytes of the version never change. */
void cache_recheck(struct zt_source *source, uint64_t offset, uint64_t length);

/* The bytes turned out to be wrong: all sources of this version fail with ZT_STALE from now on, its
 * blocks and their checksums are dropped, and the next cache_file_open of the key begins again. */
void cache_lose(struct zt_source *source);

/* Before the workers end: background work is not finished. */
void cache_interrupt(struct cache *cache);

/* Changes the bound, for a reload. */
void cache_set_limit(struct cache *cache, uint64_t max_bytes);

/* Returns the bytes on the disk, and how many there may be. */
void cache_room(struct cache *cache, uint64_t *out_used, uint64_t *out_limit);

/* Counted by base/metrics.h: hits, misses, fetched bytes, evicted bytes, blocks that did not match
 * their checksum, reads past the cache. */

#endif
