/* Blobs: components identified by the SHA-256 of their stored bytes (stated in the file or
 * computed) or of their decoded bytes. The index is empty until the first lookup; from then on it
 * takes 60 to 90 bytes per component and follows the catalog. */
#ifndef VERIFY_BLOB_INDEX_H
#define VERIFY_BLOB_INDEX_H

#include "base/name_filter.h"
#include "verify/component_digests.h"

struct component_place {
    struct generation *generation;
    uint32_t component;
};

struct blob_index;

enum blob_answer { BLOB_FOUND, BLOB_NONE, BLOB_CORRUPT, BLOB_BUSY };

struct blob_search {
    unsigned skip;             /* number of candidates to skip */
    bool may_wait;             /* set only on a worker: the answer is then never BUSY */
    struct name_filter filter; /* of models: components of other models are skipped */
};

/* Finds a component by the SHA-256 of its stored bytes and returns a reference to its generation.
 * The generation may be parked; catalog_find_path says whether the file is unchanged. Components
 * known to be corrupt are skipped: the result is CORRUPT if there are no others. BUSY: the search
 * would take too long here. */
enum blob_answer blob_find(struct server *server, const uint8_t sha256[SHA256_BYTES],
                           struct blob_search search, struct component_place *out_place);

/* Finds a compressed component by the SHA-256 of its decoded bytes, if its file states it or the
 * server has computed it, in a model that passes the filter. It searches all of these digests, so
 * call it on a worker. */
bool blob_find_decoded(struct server *server, const uint8_t sha256[SHA256_BYTES],
                       struct blob_search search, struct component_place *out_place);

/* --- for the verifier, which owns the index --- */

/* Returns NULL if out of memory. */
struct blob_index *blob_index_new(void);
/* Accepts NULL. */
void blob_index_free(struct blob_index *index);

/* These have no effect before the first lookup. The index holds no references: a generation must be
 * removed before its last reference is released, and a retired one is not added. If out of memory,
 * components are missing from the index. */
void blob_index_add(struct blob_index *index, struct generation *generation);
void blob_index_remove(struct blob_index *index, struct generation *generation);
/* Adds a component whose digest has been computed. */
void blob_index_note(struct blob_index *index, struct generation *generation, uint32_t component);

#endif
