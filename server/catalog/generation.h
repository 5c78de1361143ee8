/* A generation: one opened version of one stored file, with all that is made from it once.
 *
 * Reference-counted: a request holds one from first to last byte, so a replaced or removed file
 * never shows under a download. Immutable but for what is filled in once (verification, JSON), each
 * behind its own lock or atomics. */
#ifndef CATALOG_GENERATION_H
#define CATALOG_GENERATION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/workers.h"
#include "catalog/shard_files.h"
#include "store/store.h"
#include "zt/model.h"

/* With quotes and NUL. */
#define GENERATION_ETAG_SIZE 40

/* What is known of one component (one byte each). */
enum component_state {
    COMPONENT_UNCHECKED,
    COMPONENT_CHECKING,
    COMPONENT_VERIFIED,
    COMPONENT_UNDIGESTED,
    COMPONENT_UNSUPPORTED,
    COMPONENT_CORRUPT
};

struct kept_fact;

struct generation {
    atomic_uint references;
    char *path;         /* in the store */
    size_t name_length; /* the model's name is the path's first bytes */
    struct file_identity identity;
    /* NULL when the file cannot even be opened (error is ZT_IO), and while the catalog has parked
     * it: there are fewer descriptors than files. What catalog_find and catalog_update hand out is
     * never parked. */
    struct zt_source *source;
    atomic_bool parked;
    struct zt_model
        *model; /* NULL when the file cannot be read, or a shard of it: error says why */
    struct shard_files shards;
    struct zt_error error; /* status ZT_DATA_SHARD: not a model, not listed, still a file */
    /* Of this version of the file and the form in which this release shows it: the whole, uncoded
     * manifest's ETag. Quoted, e.g. "\"0123456789abcdef0123456789abcdef\"". Derived tags insert
     * "-suffix" before the last quote. */
    char etag[GENERATION_ETAG_SIZE];

    /* Replaced or removed: who still has it reads on, but nothing is begun or written down for it
     * any more. */
    atomic_bool retired;
    /* catalog_content.c's, of what is in the log: its error; the rank, from 1, of the file that
     * shadows it. */
    bool told;
    unsigned told_shadow;

    /* An upload's: what it hashed on the way, set once; valid when has_file_sha256 is. In memory
     * only. */
    atomic_bool has_file_sha256;
    uint8_t file_sha256[32];

    /* verifier.c's: one state a component, what failed, who waits. */
    _Atomic(unsigned char) *states;
    struct verification *verification;

    /* found_digests.c's; NULL where nothing is to be found. */
    struct found_digests *found;

    /* blob_index.c's, under its lock: its place there, 0 for none. */
    uint32_t blob_place;

    /* passthrough.c's: a verdict a component; NULL until one is asked for. */
    _Atomic(_Atomic(unsigned char) *) passthrough;

    /* kept_facts.c's: a list a component; NULL until something is kept. */
    _Atomic(_Atomic(struct kept_fact *) *) kept_facts;

    /* manifest_json.c's: the whole manifest as compact JSON, made once. */
    struct manifest_cache *manifest;
};

/* Opens and validates a stored file; an unreadable one is a generation too (model NULL). NULL when
 * the file is gone, its path cannot name a model, or memory is out. search, which may be NULL,
 * finds shards that are no siblings. May take long: not on a loop. */
struct generation *generation_open(struct store *store, const char *path,
                                   struct shard_search *search);

struct generation *generation_hold(struct generation *generation);
/* Takes NULL; void * so that it fits request_hold. Frees with the last reference. */
void generation_release(void *generation);

struct zt_text generation_name(const struct generation *generation);

/* Its own file and those of its shards, borrowed. */
struct zt_files generation_files(const struct generation *generation);

/* Descriptors that it holds while it is not parked. */
size_t generation_open_files(const struct generation *generation);

/* Whether all its files still are what they were when they were opened; and whether none was
 * written to since. */
bool generation_is_same(const struct generation *generation);
bool generation_is_unwritten(const struct generation *generation);

/* A tag derived from the generation's: "\"<base>-<suffix>\"". */
void generation_etag(const struct generation *generation, const char *suffix, char *out_text,
                     size_t size);

/* "zt", "safetensors" …; of an unreadable file the format its extension tells. */
const char *generation_format(const struct generation *generation);

/* For Last-Modified: that of the file, or shard, which was modified last; in whole seconds, and now
 * for a file that says it is of the future (RFC 9110 section 8.8.2.1). */
time_t generation_modified(const struct generation *generation);

#endif
