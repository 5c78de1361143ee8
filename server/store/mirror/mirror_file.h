/* The bytes of mirrored files: sources that read through the block cache, fetch from the upstream,
 * and are checked as a whole.
 *
 * A file is verified once all of its bytes are here and their digest agrees. Until then a client
 * never gets all of it: the last block that no client has had yet is held back
 * (zt_source_may_pass of zt/source.h). If the digest differs, every source of the file fails
 * with ZT_STALE, its blocks are dropped, and the next open begins again. */
#ifndef STORE_MIRROR_MIRROR_FILE_H
#define STORE_MIRROR_MIRROR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "upstream/upstream.h"
#include "zt/source.h"

struct mirror_files;
struct workers;

#define MIRROR_PROOF_BYTES 16

/* One version of one file of an upstream. Texts are borrowed, and copied where they are kept. */
struct mirror_place {
    struct upstream_place file;
    bool is_pinned; /* opened by its commit, not as a file of the current one; the owner's */
    /* What on_verified reported for these bytes. It names the checksums of all blocks, so bytes
     * that were evicted and fetched again do not count as verified. */
    bool is_verified;
    uint8_t proof[MIRROR_PROOF_BYTES];
};

struct mirror_files_options {
    /* upstream_fetch, or a stand-in of it. */
    void (*fetch)(struct upstream *upstream, const struct upstream_place *place,
                  struct cache_fetch *fetch);
    struct upstream *upstream;
    struct cache *cache;     /* the upstream's */
    struct workers *workers; /* hash */
    struct workers *waiters; /* wait for the inner store */
    struct store *shared;    /* in which servers keep files for each other; NULL: none */
    bool is_strict;          /* no byte of an unverified file is passed on */
    /* Called on a worker, or by mirror_file_open, without locks. The place is borrowed. on_verified
     * is short, because clients wait for it: none has all of the file before it returns.
     * after_verified and on_wrong may write to a disk. */
    void (*on_verified)(void *context, const struct mirror_place *place);
    void (*after_verified)(void *context, const struct mirror_place *place);
    void (*on_wrong)(void *context, const struct mirror_place *place);
    /* Called by any thread that reads: bytes could not be fetched. NULL: no one wants to know. */
    void (*on_failed)(void *context, const struct mirror_place *place,
                      const struct zt_error *error);
    void *context;
};

/* All files of one upstream. ZT_NO_MEMORY. */
enum zt_status mirror_files_new(const struct mirror_files_options *options,
                                struct mirror_files **out_files, struct zt_error *error);
/* Returns how many bytes were read through sources, however they came here. */
uint64_t mirror_files_read_bytes(const struct mirror_files *files);
/* For a reload. */
void mirror_files_set_strict(struct mirror_files *files, bool is_strict);
/* At shutdown, before the workers end: hashing stops, and all waiters are woken with
 * ZT_UNAVAILABLE. Hashing begins again after the next start. */
void mirror_files_interrupt(struct mirror_files *files);
/* After the workers have ended, the upstream's requests were interrupted, and all sources are
 * closed; before cache_close. Takes NULL. */
void mirror_files_free(struct mirror_files *files);

/* Opens a file. Does not ask the upstream; may wait for a disk. Sources of the same bytes share
 * their blocks and their verification, even if their paths differ. ZT_NO_MEMORY; ZT_LIMIT:
 * longer than any store keeps. */
enum zt_status mirror_file_open(struct mirror_files *files, const struct mirror_place *place,
                                struct zt_source **out_source, struct zt_error *error);

/* Returns the place with which a source was opened, borrowed from it; NULL: it is not of a mirrored
 * file. is_verified and proof are not updated. */
const struct mirror_place *mirror_file_place(const struct zt_source *source);
/* The following take sources of mirrored files only. Returns true if the bytes agree with their
 * digest. A file without a digest never does. */
bool mirror_file_is_verified(const struct zt_source *source);
/* The same, with the proof for on_verified's place. */
bool mirror_file_proof(const struct zt_source *source, uint8_t out_proof[MIRROR_PROOF_BYTES]);
/* Returns true if the bytes turned out to be wrong, so the source must be closed. */
bool mirror_file_is_lost(const struct zt_source *source);
/* Continues to fetch a file in which a reader found wrong bytes, if that has failed. Never
 * waits. */
void mirror_file_continue(const struct zt_source *source);
/* How many bytes are in the cache. */
uint64_t mirror_file_bytes_here(const struct zt_source *source);
/* Fetches all of a file, and wakes the waiter once it is verified (without a digest: once it is all
 * here), or cannot be: ZT_STALE, ZT_UNAVAILABLE. Never waits. */
void mirror_file_bring(struct zt_source *source, struct zt_source_waiter *waiter);

/* Discards what is here of a file. Its sources fail with ZT_STALE; the next open begins again. May
 * wait for a disk. */
void mirror_file_drop(struct mirror_files *files, const struct mirror_place *place);

/* Returns true if bytes of this file were passed on in the last hour that turned out to be wrong:
 * a client that resumes a download must get the whole file. */
bool mirror_file_was_wrong(struct mirror_files *files, const struct mirror_place *place);

#endif
