/* Verification: what only the data can tell.
 *
 * Opening checks everything that head, tail and manifest tell. Here the data is read: digests, and
 * the content rules of types and layouts (a bool is 0 or 1, row pointers do not fall, coordinates
 * lie inside the shape). */
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
    ZT_VERDICT_UNDIGESTED, /* the file states none: nothing to compare */
    /* the stated digest is wrong or no digest at all, or the bytes it covers do not decode */
    ZT_VERDICT_FAILED,
    ZT_VERDICT_UNSUPPORTED /* an algorithm or encoding that is not known: never "verified" */
};

struct zt_component_check {
    enum zt_verdict verdict;
    /* Stored bytes that were read to find out. */
    uint64_t hashed_bytes;
    /* expected: the file's own text (cut to fit); actual: what the bytes give, empty where there is
     * none. */
    char expected[ZT_DIGEST_TEXT_SIZE];
    char actual[ZT_DIGEST_TEXT_SIZE];
};

/* Whether a digest covers stored bytes (zTensor up to 1.2) or decoded ones (zTensor 2). The CRC-32
 * of a ZIP entry covers what is neither: the entry decompressed, with the NPY header and in the
 * stored order. For it this says true. */
bool zt_digest_covers_stored(const struct zt_model *model);

/* The digest that a component states. ZT_UNSUPPORTED if it states none, or one of an algorithm that
 * its format does not know; ZT_CORRUPT if no bytes can have that digest. */
enum zt_status zt_component_digest(const struct zt_model *model,
                                   const struct zt_component *component,
                                   struct zt_digest *out_digest, struct zt_error *error);

/* The digest stated for the decoded bytes of a component when it is a SHA-256 that covers exactly
 * those bytes. */
bool zt_component_decoded_sha256(const struct zt_model *model, const struct zt_component *component,
                                 uint8_t out_sha256[32]);

/* Called now and then with the stored bytes read since the last call; false stops with ZT_ARGUMENT
 * ("stopped"). */
struct zt_progress {
    bool (*advance)(void *context, uint64_t stored_bytes);
    void *context;
};

/* Reads one component and compares it with its digest. A mismatch is ZT_OK with ZT_VERDICT_FAILED;
 * an error status is only for what kept us from finding out (ZT_IO, ZT_NO_MEMORY). source is the
 * file the component lies in (zt_files_source); without it, NULL, nothing can be judged:
 * ZT_VERDICT_UNSUPPORTED. progress may be NULL. */
enum zt_status zt_component_check(const struct zt_model *model,
                                  const struct zt_component *component, struct zt_source *source,
                                  const struct zt_progress *progress,
                                  struct zt_component_check *out_check, struct zt_error *error);

/* Checks the content rules of an object's type and layout. ZT_INVALID or ZT_CORRUPT with rule,
 * object, component and offset (of the component; of the frame when it does not decode) when one is
 * broken; ZT_UNSUPPORTED when they cannot be judged (unknown encoding, a shard that is not there,
 * more coordinates than fit the bound on memory); ZT_OK also when there is no rule. */
enum zt_status zt_object_check(const struct zt_model *model, const struct zt_object *object,
                               const struct zt_files *files, struct zt_error *error);

/* --- zTensor 2's canonical form and content digest --- */

/* ZT_OK when the file is the canonical serialisation of its model, byte for byte (padding and
 * footer included); ZT_INVALID with a rule "zt2 §7 …" and offset otherwise; ZT_ARGUMENT when it is
 * not zTensor 2. Reads the whole file. */
enum zt_status zt_canonical_check(const struct zt_model *model, struct zt_source *source,
                                  struct zt_error *error);

/* The digest of what the model says, whatever its file looks like (zTensor 2, "zt.content/1"), by
 * sha256 or xxh3. ZT_ARGUMENT when it is not zTensor 2 or a component has no digest. */
enum zt_status zt_content_digest(const struct zt_model *model, enum zt_digest_algorithm algorithm,
                                 struct zt_digest *out_digest, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
