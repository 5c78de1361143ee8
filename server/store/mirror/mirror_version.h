/* One commit of a mirrored repository: its list of files, as the upstream states it. */
#ifndef STORE_MIRROR_MIRROR_VERSION_H
#define STORE_MIRROR_MIRROR_VERSION_H

#include <stdatomic.h>

#include "base/record.h"
#include "store/mirror/mirror_file.h"
#include "store/store.h"

struct upstream_listing;

struct mirror_entry {
    const char *path; /* in the repository */
    uint64_t size_bytes;
    enum upstream_digest digest_kind;
    uint8_t digest[32];
    const char *etag;    /* the version in a bucket; otherwise empty */
    int64_t modified_ns; /* of the commit in which the repository first had these bytes here */
    /* The following change, under the lock of the index. */
    bool is_asked;         /* it was opened, or looked up as a model */
    bool is_begun;         /* clients may have had some of its bytes before it was verified */
    bool is_begun_saved;   /* on disk */
    bool was_begun_before; /* by an earlier process, which neither verified nor kept all of them */
    int64_t wrong_s;       /* when wrong bytes of it were found last, since 1970; 0: never */
    bool is_verified;
    uint8_t proof[MIRROR_PROOF_BYTES];
};

/* Reference-counted. Everything but the flags of its entries is immutable. */
struct mirror_version {
    atomic_uint references;
    char commit[STORE_COMMIT_SIZE];
    int64_t modified_ns; /* when the repository last changed; 0: not stated */
    size_t count;
    struct mirror_entry *entries; /* sorted bytewise by path */
    char *texts;                  /* paths and ETags */
};

/* Makes a version from a list. Files whose bytes `before` has too, which may be NULL, keep their
 * times and flags; the caller holds the lock of before's index. Returns NULL if out of memory. */
struct mirror_version *mirror_version_make(const struct upstream_listing *listing,
                                           int64_t modified_ns,
                                           const struct mirror_version *before);

struct mirror_version *mirror_version_hold(struct mirror_version *version);
/* Accepts NULL. */
void mirror_version_release(struct mirror_version *version);

/* Returns NULL if the version has no such file. */
struct mirror_entry *mirror_version_find(const struct mirror_version *version, struct zt_text path);
/* Returns the index of the first file whose path is equal or greater. */
size_t mirror_version_lower_bound(const struct mirror_version *version, struct zt_text path);

/* Returns true if both are stated to have the same bytes: by a digest, or as the same version of an
 * object. */
bool mirror_entry_has_bytes_of(const struct mirror_entry *a, const struct mirror_entry *b);

/* Describes a file to its upstream; borrows all texts. */
struct upstream_place mirror_entry_place(const char *repository,
                                         const struct mirror_version *version,
                                         const struct mirror_entry *entry);

/* The same for all servers that mirror a file, and after a restart. */
struct file_identity mirror_entry_identity(const struct mirror_version *version,
                                           const struct mirror_entry *entry);

void mirror_version_write(const struct mirror_version *version, struct record_writer *out);
/* Returns NULL if the record is damaged, or out of memory. */
struct mirror_version *mirror_version_read(struct record_reader *in);

#endif
