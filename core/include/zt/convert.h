/* Converting: writing a model of one format as a file of another, checking its bytes on the way.
 *
 * Every digest that the source states is compared with the bytes that are read, so that damage is
 * not passed on. Memory grows with the number of components, not with their size, with one
 * exception: where a layout of source or target forbids repeated coordinates, one word is held for
 * each coordinate, at most 512 MiB. */
#ifndef ZT_CONVERT_H
#define ZT_CONVERT_H

#include "zt/verify.h"
#include "zt/writer.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_conversion {
    const struct zt_projection *projection;
    const struct zt_model *source;
    /* files[0] is the model's own file, files[n] is shard n - 1. An entry is NULL if the file is
     * missing; needing a missing file fails with ZT_NOT_FOUND. */
    struct zt_source *const *files;
    struct zt_writer_options options;
    /* Called with the number of decoded bytes read since the last call; may be NULL. */
    const struct zt_progress *progress;
    /* The caller promises that the source's digests have been checked, that encoded components
     * decode, and that the bytes have not changed since. None of this is then checked again, and a
     * digest that the target also states is copied without reading the data. */
    bool trusted;
};

/* The number of decoded bytes that zt_model_convert will report to progress; an estimate if some
 * lengths are unknown. */
uint64_t zt_conversion_work(const struct zt_conversion *conversion);

/* Reads every component and computes the fingerprints that the target needs
 * (zt_target_fingerprint). The source's files must not change afterwards. *out_fingerprints has one
 * entry for each component of projection->model and is freed with free(). Fails as zt_model_convert
 * does. */
enum zt_status zt_fingerprints_take(const struct zt_conversion *conversion,
                                    struct zt_fingerprint **out_fingerprints,
                                    struct zt_error *error);

/* The two steps of zt_fingerprints_take, for callers with several threads. zt_fingerprint_take
 * computes the fingerprint of one component, with same_as set to the component itself. When all are
 * computed, zt_fingerprints_match sets same_as where components have the same bytes, if the target
 * shares them. */
enum zt_status zt_fingerprint_take(const struct zt_conversion *conversion, uint32_t component,
                                   struct zt_fingerprint *out_fingerprint, struct zt_error *error);
enum zt_status zt_fingerprints_match(const struct zt_conversion *conversion,
                                     struct zt_fingerprint *fingerprints, struct zt_error *error);

/* Reads one component of projection->model and computes the digest of the bytes that the target
 * stores raw. Sets same_as to the component itself. Fails as zt_component_convert does. */
enum zt_status zt_component_hash(const struct zt_conversion *conversion, uint32_t component,
                                 enum zt_digest_algorithm algorithm,
                                 struct zt_fingerprint *out_fingerprint, struct zt_error *error);

/* Checks the content rules of source and target (docs/converting.md, Damage), as zt_model_convert
 * also does. Reads only components that have such rules. ZT_INVALID or ZT_CORRUPT if the source
 * breaks its own rules; ZT_UNSUPPORTED, with the target's rule, if an object obeys its own rules
 * but would break the rules of its layout in the target. Rules that cannot be checked are passed
 * over. Errors name the object and component of the source. */
enum zt_status zt_conversion_check(const struct zt_conversion *conversion, struct zt_error *error);

/* The two steps of zt_conversion_check, for callers with several threads: one object of the source
 * by the source's rules, and, when all objects obey these, all objects by the target's. */
enum zt_status zt_conversion_check_object(const struct zt_conversion *conversion, uint32_t object,
                                          struct zt_error *error);
enum zt_status zt_conversion_check_layouts(const struct zt_conversion *conversion,
                                           struct zt_error *error);

/* Reads one component of projection->model with all checks of zt_model_convert but those of content
 * rules, and gives the bytes that the target stores raw to the sink (which may be NULL). If
 * options.fingerprints is set, ZT_CORRUPT if the bytes do not match the fingerprint. Several
 * threads may do this at once if progress allows it. Fails as zt_model_convert does. */
enum zt_status zt_component_convert(const struct zt_conversion *conversion, uint32_t component,
                                    const struct zt_sink *sink, struct zt_error *error);

/* Writes the file that the projection describes into the sink. If the target needs fingerprints and
 * options.fingerprints is NULL, they are computed first. Errors name the component at fault:
 * ZT_CORRUPT if its digest is wrong or its bytes do not decode; ZT_UNSUPPORTED if its encoding is
 * unknown or, with the target's rule and before anything is written, if the target's layout forbids
 * its content; ZT_INVALID if its content breaks the source's rules or cannot be converted (a
 * negative index). Also ZT_ARGUMENT if progress stopped the work, ZT_NOT_FOUND for a missing file,
 * ZT_NO_MEMORY, and the status of sink or source. */
enum zt_status zt_model_convert(const struct zt_conversion *conversion, const struct zt_sink *sink,
                                struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
