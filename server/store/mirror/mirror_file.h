/* The bytes of mirrored files: sources that read through the block cache, fetch from the upstream,
 * and are checked as a whole.
 *
 * A file is verified once all of its bytes are here and their digest agrees. Until then a client
 * never gets all of it: the block that no client has had yet is held back (zt_source_may_pass of
 * zt/source.h). If the digest differs, every source of the file fails with ZT_STALE, its blocks are
 * dropped, and the next open begins again. */
#ifndef STORE_MIRROR_MIRROR_FILE_H
#define STORE_MIRROR_MIRROR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/source.h"

struct cache;
struct mirror_files;
struct upstream;
struct workers;

#define MIRROR_PROOF_BYTES 16

enum mirror_digest { MIRROR_NO_DIGEST, MIRROR_SHA256, MIRROR_GIT_SHA1 };

/* One version of one file of an upstream. Texts are borrowed, and copied where they are kept. */
struct mirror_place {
    const char *repository;
    const char *commit;
    const char *path; /* in the repository */
    uint64_t size_bytes;
    enum mirror_digest digest_kind;
    uint8_t digest[32]; /* as the upstream states it: 32 or 20 bytes */
    /* What on_verified reported for these bytes. It names the checksums of all blocks, so bytes
     * that were evicted and fetched again are not taken for verified ones. */
    bool is_verified;
    uint8_t proof[MIRROR_PROOF_BYTES];
};

struct mirror_files_options {
    struct upstream *upstream;
    struct cache *cache;     /* the upstream's */
    struct workers *workers; /* hash */
    bool is_strict;          /* no byte of an unverified file is passed on */
    /* Called on a worker, without locks; may write to a disk. The place is borrowed. */
    void (*on_verified)(void *context, const struct mirror_place *place);
    void (*on_wrong)(void *context, const struct mirror_place *place);
    void *context;
};

/* All files of one upstream. ZT_NO_MEMORY. */
enum zt_status mirror_files_new(const struct mirror_files_options *options,
                                struct mirror_files **out_files, struct zt_error *error);
/* For a reload. */
void mirror_files_set_strict(struct mirror_files *files, bool is_strict);
/* At shutdown, before the workers end: hashing stops, and whoever waits for a file is woken with
 * ZT_UNAVAILABLE. What was hashed is hashed again after the next start. */
void mirror_files_interrupt(struct mirror_files *files);
/* After the workers have ended and all sources are closed. Takes NULL. */
void mirror_files_free(struct mirror_files *files);

/* Opens a file. Does not ask the upstream. Sources of the same bytes share their blocks and their
 * verification, whatever their paths. ZT_NO_MEMORY; ZT_LIMIT: longer than any store keeps. */
enum zt_status mirror_file_open(struct mirror_files *files, const struct mirror_place *place,
                                struct zt_source **out_source, struct zt_error *error);

/* Returns true if a source is of a mirrored file. */
bool mirror_file_is(const struct zt_source *source);
/* Returns true if the bytes of a mirrored file agree with their digest. A file without a digest
 * never does. */
bool mirror_file_is_verified(const struct zt_source *source);
/* Returns true if the bytes turned out to be wrong, so the source is of no use any more. */
bool mirror_file_is_lost(const struct zt_source *source);

/* Returns true if bytes of this file were passed on in the last hour that turned out to be wrong:
 * a client that resumes a download must get the whole file. */
bool mirror_file_was_wrong(struct mirror_files *files, const struct mirror_place *place);

#endif
