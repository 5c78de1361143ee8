/* A generation: an opened version of a stored file, with everything that is derived from it once.
 *
 * It is reference-counted: a request holds its generation until the last byte of its answer is
 * sent, so that replacing or removing a file never changes a download. It is immutable, except for
 * the side tables, each of which has its own lock or atomics. */
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

/* Room for the quotes and the NUL. */
#define GENERATION_ETAG_SIZE 40

/* The state of a component; kept in one byte. */
enum component_state {
    COMPONENT_UNCHECKED,
    COMPONENT_CHECKING,
    COMPONENT_VERIFIED,
    COMPONENT_UNDIGESTED,
    COMPONENT_UNSUPPORTED,
    COMPONENT_CORRUPT,
    /* Only an answer, never stored: the bytes are remote and cannot be fetched at present. */
    COMPONENT_UNAVAILABLE
};

struct catalog_index;
struct generation;
struct shard_search;

/* A table that a module above the catalog attaches to a generation; it is the first member of that
 * module's structure. It is freed with the generation, before the model and the files. */
struct side_table {
    void (*free)(struct side_table *table, const struct generation *generation);
};

/* Each slot belongs to one module, and only that module knows the table's structure. */
enum side_table_slot {
    SIDE_TABLE_VERDICTS,    /* verify/verification.h */
    SIDE_TABLE_DIGESTS,     /* verify/digest_work.h */
    SIDE_TABLE_MANIFEST,    /* derived: the manifest as JSON */
    SIDE_TABLE_PASSTHROUGH, /* derived: the stored frames that every decoder accepts */
    SIDE_TABLES
};

struct generation {
    /* For parking.c, under its lock: link in the list of open generations; first in this
     * structure. */
    struct recency_link open_link;
    bool is_in_open;
    unsigned idle_holds; /* references whose owners do not read the files at present */
    atomic_bool used;    /* found since it was last considered for closing */

    atomic_uint references;
    struct store *store;
    const char *base_path; /* prefix of its addresses (the setting) */
    /* The path in the store; for a split GGUF, the path that represents all parts
     * (parts/split_path.h). */
    char *path;
    /* The path of the model's own file: equal to path, except for a split GGUF, whose own file is
     * its first part. */
    char *own_path;
    size_t name_length;
    char *variant_name; /* NULL: the model's name is the path's first name_length bytes */
    /* A model made of several stored models: an index, or a split GGUF. Its shards are its
     * parts. */
    bool is_joined;
    bool is_of_commit; /* of an earlier commit: found by its name, and not listed */
    struct file_identity identity;
    /* NULL if the file cannot even be opened (error is then ZT_IO), and while the generation is
     * parked: if there are more files than descriptors, the catalog closes files of unused
     * generations. Generations from catalog_find and catalog_update are never parked. */
    struct zt_source *source;
    atomic_bool parked;
    /* NULL if the file or one of its shards cannot be read; see error. */
    struct zt_model *model;
    /* The number of the model's parameters (zt_model_elements), computed once for listings; valid
     * if has_parameters. */
    uint64_t parameters;
    bool has_parameters;
    struct shard_files shards;
    /* ZT_DATA_SHARD: not a model and not listed, but still a file. Never NULL: most generations
     * have no error and share a constant for that, since an error takes 2 KiB. */
    const struct zt_error *error;
    /* The ETag of the whole manifest without a content coding, for this version of the file and
     * this form of the JSON. Quoted, for example "\"0123456789abcdef0123456789abcdef\"". Derived
     * tags insert "-suffix" before the last quote. */
    char etag[GENERATION_ETAG_SIZE];

    /* An earlier generation of the same identity had other bytes, so saved verdicts and digests may
     * be about those. Set before the generation is found. */
    bool ignores_saved;
    /* The generation was replaced or removed. Requests that hold it continue to read it, but no
     * work is started for it or saved. */
    atomic_bool retired;
    /* For catalog_content.c, what has been logged: the error, and the file that hides this one (1 +
     * the rank of its extension). */
    bool logged_error;
    unsigned logged_shadow;

    /* When its files were last seen unchanged, and the number of store changes at that time
     * (catalog.c); 0: never. */
    _Atomic uint64_t seen;

    /* When opening its file again last failed because the store was unreachable
     * (clock_coarse_ms). */
    _Atomic int64_t failed_ms;

    /* One enum component_state per component; NULL without a model. */
    _Atomic(unsigned char) *states;

    /* The tables of the modules above the catalog. */
    _Atomic(struct side_table *) side_tables[SIDE_TABLES];
};

/* Opens and validates a stored file. An unreadable file becomes a generation too, without a model.
 * Returns NULL if the file is gone, if its path cannot name a model, or if out of memory. search,
 * which may be NULL, finds shards by content if they are not where the model expects them. May take
 * long, so it must not run on a loop. */
struct generation *generation_open(const struct server *server, const char *path,
                                   struct shard_search *search);

/* Does the same for the path of a split GGUF. Also returns NULL if no part of it is stored or known
 * to the catalog's index, which may be NULL. */
struct generation *generation_open_split(const struct server *server, const char *path,
                                         const struct catalog_index *known);

/* Returns true if its path is not the path of a stored file. */
static inline bool generation_is_split(const struct generation *generation)
{
    return generation->own_path != generation->path;
}

struct generation *generation_hold(struct generation *generation);
/* Releases a reference; the last release frees the generation. Accepts NULL; void * for
 * request_hold. */
void generation_release(void *generation);

/* References for code that waits to read the files, or does not read them. The catalog may close
 * the files in the meantime, so that a long queue does not hold all descriptors. They may be
 * released after the catalog has ended (parking.c). catalog_hold_open turns one into an ordinary
 * reference. */
void parking_hold_idle(struct generation *generation);
void parking_release_idle(struct generation *generation);

/* Returns the side table in a slot; NULL until one is attached. */
static inline struct side_table *generation_side_table(const struct generation *generation,
                                                       enum side_table_slot slot)
{
    return atomic_load(&generation->side_tables[slot]);
}

/* Attaches a table and returns it. If another thread has attached one first, frees this table and
 * returns the other. */
struct side_table *generation_attach(struct generation *generation, enum side_table_slot slot,
                                     struct side_table *table);

struct zt_text generation_name(const struct generation *generation);

/* Returns the generation's own file and the files of its shards, without references. */
struct zt_files generation_files(const struct generation *generation);

/* Returns the size of the model's files, excluding an index. */
uint64_t generation_size(const struct generation *generation);

/* Returns the latest modification time of its files. */
int64_t generation_modified_ns(const struct generation *generation);

/* Returns how many descriptors it holds while it is not parked. */
size_t generation_open_files(const struct generation *generation);

/* Returns true if all open files are unchanged since they were opened. */
bool generation_is_same(const struct generation *generation);
/* Does the same, but ignores renaming and removal, which leave the bytes unchanged. A source of a
 * remote store always returns the bytes of one version. */
bool generation_is_unwritten(const struct generation *generation);

/* Returns true if one of its files is mirrored and has not been verified yet. Never waits. */
bool generation_is_unverified(const struct generation *generation);

/* Writes a tag derived from the generation's: "\"<base>-<suffix>\"". */
void generation_etag(const struct generation *generation, const char *suffix, char *out_text,
                     size_t size);

/* Return true if the file is not a model and not listed: a data shard, or a file of another
 * kind, whose extension is one that PyTorch shares with other programs. */
bool generation_is_hidden(const struct generation *generation);
bool generation_is_not_a_model(const struct generation *generation);
/* Returns true if a file at this path that could not be opened, with this error, is not a
 * model but a file of another kind. */
bool error_is_not_a_model(const char *path, const struct zt_error *error);

/* Returns "zt", "safetensors" and so on; for an unreadable file, the format of its extension. */
const char *generation_format(const struct generation *generation);

/* Returns the Last-Modified time: the latest modification time of the file and its shards in whole
 * seconds, but not later than now (RFC 9110 section 8.8.2.1). */
time_t generation_modified(const struct generation *generation);

#endif
