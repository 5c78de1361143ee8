/* Tensors and whole files that are here already (pull --have), found by their digests. Digests are
 * taken from the files if these state them, and otherwise computed when they are first needed. A
 * file that states wrong ones, or changes, gives wrong bytes: callers check the result. */
#ifndef TRANSFERS_LOCAL_TENSORS_H
#define TRANSFERS_LOCAL_TENSORS_H

#include "download/copied_bytes.h"
#include "zt/model.h"

struct local_tensors;

/* Opens files, and the files in folders and below; keeps them open. Hidden files are left out, and
 * files in folders that cannot be opened. ZT_IO and other statuses, about *out_path. */
enum zt_status local_tensors_open(const char *const *paths, unsigned count,
                                  struct local_tensors **out_local, const char **out_path,
                                  struct zt_error *error);
/* watch is called while tensors are hashed, with the bytes to hash and the bytes done. Its calls
 * come one after another. */
void local_tensors_watch(struct local_tensors *local,
                         void (*watch)(void *context, uint64_t total, uint64_t done),
                         void *context);
/* Accepts NULL. */
void local_tensors_free(struct local_tensors *local);

/* Finds the digest that a file states of exactly a component's stored bytes. */
bool stored_digest_of(const struct zt_model *model, const struct zt_component *component,
                      struct zt_digest *out_digest);

/* For wanted_bytes.dtype: a whole file. */
#define WHOLE_FILE 255

/* The tensor that bytes are of. All NULL: none. */
struct tensor_subject {
    const struct zt_model *model;
    const struct zt_object *object;
    const struct zt_component *component;
};

/* Stored bytes of a tensor, or of a whole file, that a server has. */
struct wanted_bytes {
    struct tensor_subject subject;
    uint64_t at;
    uint64_t length;
    uint8_t dtype; /* enum zt_dtype */
    bool has_sha256;
    bool has_xxh3; /* the file's own digest, if it states no SHA-256 */
    uint8_t sha256[32];
    uint8_t xxh3[8];
    bool is_found;
};

/* Returns true if bytes of this length and type are here, so that it is worth knowing digests. */
bool local_tensors_may_have(const struct local_tensors *local, uint64_t length, uint8_t dtype);

/* Adds where wanted bytes are, and sets is_found. Hashes with all processors. ZT_NO_MEMORY. */
enum zt_status local_tensors_find(struct local_tensors *local, struct wanted_bytes *wanted,
                                  size_t count, struct copied_bytes *copied,
                                  struct zt_error *error);

/* A local tensor that may be another version of a wanted one. */
struct similar_tensor {
    struct zt_source *source;
    uint64_t at;
    uint8_t sha256[32];
};

/* Finds tensors of the same name, type and shape for wanted bytes that were not found and have a
 * known digest. Hashes like local_tensors_find. *out_similar has one entry for each of the wanted
 * bytes, source NULL: there is none; the caller frees it. ZT_NO_MEMORY. */
enum zt_status local_tensors_find_similar(struct local_tensors *local,
                                          const struct wanted_bytes *wanted, size_t count,
                                          struct similar_tensor **out_similar,
                                          struct zt_error *error);

/* How often in a row servers had no use for these tensors (download/differences.h). */
atomic_uint *local_tensors_refusals(struct local_tensors *local);

#endif
