/* Verification: the checks that need the data.
 *
 * Opening a model checks everything that head, tail and manifest state. The functions here read the
 * data, to check digests and the content rules of types and layouts (a bool is 0 or 1, row pointers
 * do not decrease, coordinates are inside the shape). */
#ifndef ZT_VERIFY_H
#define ZT_VERIFY_H

#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/shards.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum zt_verdict {
    ZT_VERDICT_VERIFIED,   /* the bytes have the stated digest */
    ZT_VERDICT_UNDIGESTED, /* the file states no digest */
    /* The bytes do not have the stated digest or do not decode, or the digest is malformed. */
    ZT_VERDICT_FAILED,
    ZT_VERDICT_UNSUPPORTED /* an unknown algorithm or encoding, or a missing file */
};

struct zt_component_check {
    enum zt_verdict verdict;
    /* Stored bytes that were read. */
    uint64_t hashed_bytes;
    /* expected: the file's own text, truncated to fit; actual: the digest of the bytes. Each is
     * empty if there is none. */
    char expected[ZT_DIGEST_TEXT_SIZE];
    char actual[ZT_DIGEST_TEXT_SIZE];
};

/* Called from time to time with the number of stored bytes read since the last call. If it returns
 * false, the work stops and fails with ZT_ARGUMENT ("stopped"). */
struct zt_progress {
    bool (*advance)(void *context, uint64_t stored_bytes);
    void *context;
};

/* Reads one component and compares it with its digest. A mismatch is ZT_OK with ZT_VERDICT_FAILED;
 * an error status means that the bytes could not be read (ZT_IO, ZT_NO_MEMORY) or that progress
 * stopped the work (ZT_ARGUMENT). source is the file that holds the component (zt_files_source); if
 * it is NULL, the verdict on a stated digest is ZT_VERDICT_UNSUPPORTED. progress may be NULL. */
enum zt_status zt_component_check(const struct zt_model *model,
                                  const struct zt_component *component, struct zt_source *source,
                                  const struct zt_progress *progress,
                                  struct zt_component_check *out_check, struct zt_error *error);

/* One of several components to check. */
struct zt_component_to_check {
    const struct zt_component *component;
    const struct zt_progress *progress; /* may be NULL; one call must not stop the others */
    /* The result of zt_component_check. */
    enum zt_status status;
    struct zt_component_check check;
    struct zt_error error;
};

/* Called with each component as soon as its result is known. */
struct zt_checked_sink {
    void (*take)(void *context, struct zt_component_to_check *item);
    void *context;
};

/* Does what zt_component_check does for components of one file, two at a time where that is faster
 * (zt_hasher_update_pair). source may be NULL, as there. Sets status, check and error of each;
 * check keeps its value where the status is an error. sink may be NULL. */
void zt_components_check(const struct zt_model *model, struct zt_source *source,
                         struct zt_component_to_check *items, size_t count,
                         const struct zt_checked_sink *sink);

/* Checks the content rules of an object's type and layout (docs/rules/data.md). ZT_OK if they hold
 * or there are none. ZT_INVALID or ZT_CORRUPT with rule, object, component and offset (of the
 * component, or of the frame that does not decode); ZT_UNSUPPORTED if they cannot be checked,
 * because of an unknown encoding, a missing shard, or more coordinates than the bound on memory
 * allows; ZT_NO_MEMORY, ZT_IO. */
enum zt_status zt_object_check(const struct zt_model *model, const struct zt_object *object,
                               const struct zt_files *files, struct zt_error *error);

/* --- zTensor 2's canonical form and content digest --- */

/* Reads the whole file and checks that it is the canonical serialisation of its model, byte for
 * byte, including padding and footer (section 7). ZT_INVALID with a rule "zt2 §7 …" and offset if
 * it is not; ZT_ARGUMENT for any other format than zTensor 2; ZT_NO_MEMORY, ZT_IO. */
enum zt_status zt_canonical_check(const struct zt_model *model, struct zt_source *source,
                                  struct zt_error *error);

/* The digest of a model's content, independent of its layout in files (zTensor 2, "zt.content/1"),
 * computed from the components' digests. algorithm is SHA-256 or XXH3. ZT_ARGUMENT for any other
 * format than zTensor 2, or if a component states no digest; ZT_NO_MEMORY. */
enum zt_status zt_content_digest(const struct zt_model *model, enum zt_digest_algorithm algorithm,
                                 struct zt_digest *out_digest, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
