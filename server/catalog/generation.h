/* A generation: one opened version of one stored file, and all that is made from it once.
 *
 * Reference-counted: a request holds one from the first to the last byte of its answer, so that a
 * file that is replaced or removed never changes under a download. Immutable, except for what the
 * side tables hold, each behind its own lock or atomics. */
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

/* What is known of one component; kept in one byte. */
enum component_state {
    COMPONENT_UNCHECKED,
    COMPONENT_CHECKING,
    COMPONENT_VERIFIED,
    COMPONENT_UNDIGESTED,
    COMPONENT_UNSUPPORTED,
    COMPONENT_CORRUPT
};

struct generation;

/* A table that a room above the catalog keeps with a generation: the first member of a structure of
 * its own, so that one is the other. The last reference to the generation frees it, before the
 * model and the files go. */
struct side_table {
    void (*free)(struct side_table *table, const struct generation *generation);
};

/* Each slot belongs to one module, which alone knows its structure. */
enum side_table_slot {
    SIDE_TABLE_VERDICTS,    /* verify/verification.h */
    SIDE_TABLE_DIGESTS,     /* verify/digest_work.h */
    SIDE_TABLE_MANIFEST,    /* derived: the manifest as JSON */
    SIDE_TABLE_PASSTHROUGH, /* derived: which stored frames any decoder takes */
    SIDE_TABLES
};

struct generation {
    atomic_uint references;
    char *path;         /* in the store */
    size_t name_length; /* the model's name is the path's first bytes */
    struct file_identity identity;
    /* NULL if the file cannot even be opened (error is ZT_IO), and while the catalog has parked it,
     * which it does because there may be more files than descriptors. Generations from catalog_find
     * and catalog_update are never parked. */
    struct zt_source *source;
    atomic_bool parked;
    /* NULL if the file, or one of its shards, cannot be read: error says why. */
    struct zt_model *model;
    struct shard_files shards;
    struct zt_error error; /* ZT_DATA_SHARD: not a model and not listed, but still a file */
    /* The ETag of the whole manifest without a content coding: of this version of the file, as this
     * release shows it. Quoted, e.g. "\"0123456789abcdef0123456789abcdef\"". Derived tags insert
     * "-suffix" before the last quote. */
    char etag[GENERATION_ETAG_SIZE];

    /* Replaced or removed: requests that hold it read on, but nothing more is begun or saved for
     * it. */
    atomic_bool retired;
    /* catalog_content.c's, about what was logged: the error; the file that shadows this one, by its
     * rank, from 1. */
    bool logged_error;
    unsigned logged_shadow;

    /* The SHA-256 of the whole file, computed during its upload; set once, valid if has_file_sha256
     * is. In memory only. */
    atomic_bool has_file_sha256;
    uint8_t file_sha256[32];

    /* One enum component_state for each component; NULL without a model. */
    _Atomic(unsigned char) *states;

    /* What the rooms above keep with the generation. */
    _Atomic(struct side_table *) side_tables[SIDE_TABLES];
};

/* Opens and validates a stored file; an unreadable one is a generation too (model NULL). NULL if
 * the file is gone, its path cannot name a model, or out of memory. search, which may be NULL,
 * finds shards by their content if they are not where the model says. May take long: not on a
 * loop. */
struct generation *generation_open(struct store *store, const char *path,
                                   struct shard_search *search);

struct generation *generation_hold(struct generation *generation);
/* Takes NULL; void * so that it fits request_hold. The last reference frees. */
void generation_release(void *generation);

/* The side table in a slot; NULL until one is attached. */
static inline struct side_table *generation_side_table(const struct generation *generation,
                                                       enum side_table_slot slot)
{
    return atomic_load(&generation->side_tables[slot]);
}

/* Attaches a table. If another thread was first, frees it and returns the one that is there. */
struct side_table *generation_attach(struct generation *generation, enum side_table_slot slot,
                                     struct side_table *table);

struct zt_text generation_name(const struct generation *generation);

/* Its own file and those of its shards, borrowed. */
struct zt_files generation_files(const struct generation *generation);

/* How many descriptors it holds while it is not parked. */
size_t generation_open_files(const struct generation *generation);

/* Whether all files that are open still are what they were when they were opened. */
bool generation_is_same(const struct generation *generation);
/* The same, except that files may have been renamed or removed: their bytes are still those. */
bool generation_is_unwritten(const struct generation *generation);

/* A tag derived from the generation's: "\"<base>-<suffix>\"". */
void generation_etag(const struct generation *generation, const char *suffix, char *out_text,
                     size_t size);

/* "zt", "safetensors" …; for an unreadable file the format that its extension stands for. */
const char *generation_format(const struct generation *generation);

/* For Last-Modified: the time of the file, or shard, that was modified last, in whole seconds; at
 * most now (RFC 9110 section 8.8.2.1). */
time_t generation_modified(const struct generation *generation);

#endif
