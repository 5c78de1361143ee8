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

/* Stored bytes of a tensor, or of a whole file, that a server has. */
struct wanted_bytes {
    uint64_t at;
    uint64_t length;
    uint8_t dtype; /* enum zt_dtype */
    bool has_sha256;
    bool has_xxh3; /* the file's own digest, if it states no SHA-256 */
    uint8_t sha256[32];
    uint8_t xxh3[8];
};

/* Returns true if bytes of this length and type are here, so that it is worth knowing digests. */
bool local_tensors_may_have(const struct local_tensors *local, uint64_t length, uint8_t dtype);

/* Adds where wanted bytes are. Hashes with all processors. ZT_NO_MEMORY. */
enum zt_status local_tensors_find(struct local_tensors *local, const struct wanted_bytes *wanted,
                                  size_t count, struct copied_bytes *copied,
                                  struct zt_error *error);

#endif
