/* Verification: the checks that need the data.
 *
 * Opening a model checks everything that head, tail and manifest state. Here the data is read, for
 * digests and for the content rules of types and layouts (a bool is 0 or 1, row pointers do not
 * decrease, coordinates lie inside the shape). */
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
    ZT_VERDICT_VERIFIED,   /* the stated digest is right */
    ZT_VERDICT_UNDIGESTED, /* the file states none */
    /* The stated digest is wrong or malformed, or the bytes it covers do not decode. */
    ZT_VERDICT_FAILED,
    ZT_VERDICT_UNSUPPORTED /* an unknown algorithm or encoding: never "verified" */
};

struct zt_component_check {
    enum zt_verdict verdict;
    /* Stored bytes that were read. */
    uint64_t hashed_bytes;
    /* expected: the file's own text, cut to fit; actual: the digest of the bytes, empty if there is
     * none. */
    char expected[ZT_DIGEST_TEXT_SIZE];
    char actual[ZT_DIGEST_TEXT_SIZE];
};

/* Called from time to time with the stored bytes read since the last call. False stops the work,
 * which returns ZT_ARGUMENT ("stopped"). */
struct zt_progress {
    bool (*advance)(void *context, uint64_t stored_bytes);
    void *context;
};

/* Reads one component and compares it with its digest. A mismatch is ZT_OK with ZT_VERDICT_FAILED;
 * an error status means that the bytes could not be read (ZT_IO, ZT_NO_MEMORY) or progress stopped
 * it. source is the file that the component lies in (zt_files_source); if it is NULL, the verdict
 * is ZT_VERDICT_UNSUPPORTED. progress may be NULL. */
enum zt_status zt_component_check(const struct zt_model *model,
                                  const struct zt_component *component, struct zt_source *source,
                                  const struct zt_progress *progress,
                                  struct zt_component_check *out_check, struct zt_error *error);

/* Checks the content rules of an object's type and layout. ZT_OK if they hold or there are none.
 * ZT_INVALID or ZT_CORRUPT with rule, object, component and offset (of the component, or of the
 * frame that does not decode); ZT_UNSUPPORTED if they cannot be judged: an unknown encoding, a
 * missing shard, more coordinates than the bound on memory allows. */
enum zt_status zt_object_check(const struct zt_model *model, const struct zt_object *object,
                               const struct zt_files *files, struct zt_error *error);

/* --- zTensor 2's canonical form and content digest --- */

/* ZT_OK if the file is the canonical serialisation of its model, byte for byte, including padding
 * and footer; else ZT_INVALID with a rule "zt2 §7 …" and offset. ZT_ARGUMENT if it is not zTensor
 * 2. Reads the whole file. */
enum zt_status zt_canonical_check(const struct zt_model *model, struct zt_source *source,
                                  struct zt_error *error);

/* The digest of what the model says, whatever its file looks like (zTensor 2, "zt.content/1"), by
 * sha256 or xxh3. ZT_ARGUMENT if it is not zTensor 2 or a component has no digest. */
enum zt_status zt_content_digest(const struct zt_model *model, enum zt_digest_algorithm algorithm,
                                 struct zt_digest *out_digest, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
