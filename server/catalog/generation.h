/* A generation: one opened version of one stored file, and everything that is made from it once.
 *
 * Reference-counted: a request holds its generation from the first to the last byte of its answer,
 * so replacing or removing a file never changes a download. Immutable, except for the side tables,
 * each of which has its own lock or atomics. */
#ifndef CATALOG_GENERATION_H
#define CATALOG_GENERATION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/recency.h"
#include "base/server.h"
#include "base/workers.h"
#include "catalog/shard_files.h"
#include "store/store.h"
#include "zt/model.h"

/* With quotes and NUL. */
#define GENERATION_ETAG_SIZE 40

/* What is known about one component; kept in one byte. */
enum component_state {
    COMPONENT_UNCHECKED,
    COMPONENT_CHECKING,
    COMPONENT_VERIFIED,
    COMPONENT_UNDIGESTED,
    COMPONENT_UNSUPPORTED,
    COMPONENT_CORRUPT,
    /* What an answer may be, but never kept: its bytes are elsewhere, and cannot be had now. */
    COMPONENT_UNAVAILABLE
};

struct generation;

/* A table that a room above the catalog keeps with a generation; the first member of that room's
 * own structure. It is freed with the generation, before the model and the files. */
struct side_table {
    void (*free)(struct side_table *table, const struct generation *generation);
};

/* Each slot belongs to one module, and only that module knows its structure. */
enum side_table_slot {
    SIDE_TABLE_VERDICTS,    /* verify/verification.h */
    SIDE_TABLE_DIGESTS,     /* verify/digest_work.h */
    SIDE_TABLE_MANIFEST,    /* derived: the manifest as JSON */
    SIDE_TABLE_PASSTHROUGH, /* derived: which stored frames every decoder accepts */
    SIDE_TABLES
};

struct generation {
    /* parking.c, under its lock: in the list of those that are open; first in this structure. */
    struct recency_link open_link;
    bool is_in_open;
    unsigned idle_holds; /* references of those who do not read the files for now */
    atomic_bool used;    /* found since the files were last considered for closing */

    atomic_uint references;
    struct store *store;
    const char *base_path; /* what its addresses begin with (the setting) */
    /* In the store; of a split GGUF, the path that stands for all parts (catalog/split_path.h). */
    char *path;
    /* Where the model's own file is: path, except for a split GGUF, whose first part that is. */
    char *own_path;
    size_t name_length; /* the model's name is the path's first bytes */
    /* One model of several that are stored: an index, or a split GGUF. Its shards are its parts. */
    bool is_joined;
    struct file_identity identity;
    /* NULL if the file cannot even be opened (error is ZT_IO), and while the generation is parked:
     * the catalog closes files of unused generations when there are more files than descriptors.
     * Generations from catalog_find and catalog_update are never parked. */
    struct zt_source *source;
    atomic_bool parked;
    /* NULL if the file, or one of its shards, cannot be read: error says why. */
    struct zt_model *model;
    struct shard_files shards;
    /* ZT_DATA_SHARD: not a model and not listed, but still a file. Never NULL. Most generations
     * have none, and share one that says so, since it takes 2 KiB. */
    const struct zt_error *error;
    /* The ETag of the whole manifest without a content coding, for this version of the file and
     * this form of the JSON. Quoted, e.g. "\"0123456789abcdef0123456789abcdef\"". Derived tags
     * insert "-suffix" before the last quote. */
    char etag[GENERATION_ETAG_SIZE];

    /* Replaced or removed: requests that hold it continue to read it, but nothing more is begun or
     * saved for it. */
    atomic_bool retired;
    /* What catalog_content.c has logged: the error, and the file that shadows this one (1 + the
     * rank of its extension). */
    bool logged_error;
    unsigned logged_shadow;

    /* When its files were last seen unchanged, and how many changes of the store were known by
     * then (catalog.c); 0: never. */
    _Atomic uint64_t seen;

    /* When opening its file again last failed because the store was away (clock_coarse_ms). */
    _Atomic int64_t failed_ms;

    /* The SHA-256 of the whole file, computed during its upload; set once, valid if has_file_sha256
     * is. A model's is saved with what has been verified. */
    atomic_bool has_file_sha256;
    uint8_t file_sha256[32];

    /* One enum component_state for each component; NULL without a model. */
    _Atomic(unsigned char) *states;

    /* Kept with the generation by the rooms above. */
    _Atomic(struct side_table *) side_tables[SIDE_TABLES];
};

/* Opens and validates a stored file; an unreadable file becomes a generation too (model NULL). NULL
 * if the file is gone, if its path cannot name a model, or if out of memory. search, which may be
 * NULL, finds shards by their content if they are not where the model says. May take a long time:
 * not on a loop. */
struct generation *generation_open(const struct server *server, const char *path,
                                   struct shard_search *search);

/* The same for the path of a split GGUF; NULL as well if no part of it is known (the catalog's
 * index, which may be NULL) or stored. */
struct generation *generation_open_split(const struct server *server, const char *path,
                                         const struct catalog_index *known);

/* Whether its path is that of no stored file. */
static inline bool generation_is_split(const struct generation *generation)
{
    return generation->own_path != generation->path;
}

struct generation *generation_hold(struct generation *generation);
/* Releases a reference; the last one frees the generation. Takes NULL; void * for request_hold. */
void generation_release(void *generation);

/* References for those who wait to read the files, or do not read them: the catalog may close the
 * files meanwhile, so that a long queue does not take all descriptors. Released after the catalog
 * has ended, if need be (parking.c). catalog_hold_open gives an ordinary one. */
void parking_hold_idle(struct generation *generation);
void parking_release_idle(struct generation *generation);

/* The side table in a slot; NULL until one is attached. */
static inline struct side_table *generation_side_table(const struct generation *generation,
                                                       enum side_table_slot slot)
{
    return atomic_load(&generation->side_tables[slot]);
}

/* Attaches a table and returns it. If another thread was faster, frees the table and returns the
 * attached one. */
struct side_table *generation_attach(struct generation *generation, enum side_table_slot slot,
                                     struct side_table *table);

struct zt_text generation_name(const struct generation *generation);

/* The generation's own file and those of its shards, borrowed. */
struct zt_files generation_files(const struct generation *generation);

/* Bytes of the model's files; without the index if it has one. */
uint64_t generation_size(const struct generation *generation);

/* When the latest of its files was modified. */
int64_t generation_modified_ns(const struct generation *generation);

/* How many descriptors it holds while it is not parked. */
size_t generation_open_files(const struct generation *generation);

/* Whether all open files are unchanged since they were opened. */
bool generation_is_same(const struct generation *generation);
/* The same, except that files may have been renamed or removed, which leaves their bytes; sources
 * of a store that is elsewhere always have those of one version. */
bool generation_is_unwritten(const struct generation *generation);

/* A tag derived from the generation's: "\"<base>-<suffix>\"". */
void generation_etag(const struct generation *generation, const char *suffix, char *out_text,
                     size_t size);

/* Whether it is not a model, and not listed: a data shard, or a file that turned out to be foreign.
 * A file of another kind under an extension that PyTorch shares with much else is foreign. */
bool generation_is_hidden(const struct generation *generation);
bool generation_is_foreign(const struct generation *generation);
/* Whether a file that could not be opened as a model, with this error, is foreign at that path. */
bool generation_error_is_foreign(const char *path, const struct zt_error *error);

/* "zt", "safetensors" …; for an unreadable file the format that its extension names. */
const char *generation_format(const struct generation *generation);

/* For Last-Modified: the latest modification time of the file and its shards, in whole seconds; at
 * most now (RFC 9110 section 8.8.2.1). */
time_t generation_modified(const struct generation *generation);

#endif
