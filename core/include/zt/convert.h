/* Converting: a model of one format into a file of another, its bytes checked on the way.
 *
 * Every digest that the source states is compared with the bytes that are read, so that no damage
 * is passed on. Memory grows with the number of components, never with their size; only where a
 * layout of source or target promises that coordinates differ is a word held for each, at most 512
 * MiB. */
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
    /* files[0] is the model's own, files[n] shard n - 1. NULL if it is missing: ZT_NOT_FOUND if it
     * is needed. */
    struct zt_source *const *files;
    struct zt_writer_options options;
    /* Gets decoded bytes as they are read; may be NULL. */
    const struct zt_progress *progress;
    /* The source's digests were compared before, encoded components decode, and the bytes have not
     * changed. Then none of this is checked again, and a digest that the target states too is
     * copied without reading anything. */
    bool trusted;
};

/* How many decoded bytes zt_model_convert will report to its progress; an estimate if some lengths
 * are unknown. */
uint64_t zt_conversion_work(const struct zt_conversion *conversion);

/* Reads every component once and takes its fingerprint, as the target needs it
 * (zt_target_fingerprint). The file must not change afterwards. *out_fingerprints is freed with
 * free(). Errors as zt_model_convert's. */
enum zt_status zt_fingerprints_take(const struct zt_conversion *conversion,
                                    struct zt_fingerprint **out_facts, struct zt_error *error);

/* The two halves of zt_fingerprints_take, for callers with several threads: of one component, which
 * is the same as no other yet; and, once all are taken, finding those with the same bytes if the
 * target shares them. */
enum zt_status zt_fingerprint_take(const struct zt_conversion *conversion, uint32_t component,
                                   struct zt_fingerprint *out_fact, struct zt_error *error);
enum zt_status zt_fingerprints_match(const struct zt_conversion *conversion,
                                     struct zt_fingerprint *fingerprints, struct zt_error *error);

/* The content rules of source and target (docs/converting.md, Damage), which zt_model_convert also
 * checks. Reads the components that have rules. ZT_INVALID or ZT_CORRUPT if the source breaks its
 * own rules; ZT_UNSUPPORTED, with the target's rule, if an object obeys its own rules but would
 * break those of the layout it gets. What cannot be judged passes. Errors name the source's object
 * and component. */
enum zt_status zt_conversion_check(const struct zt_conversion *conversion, struct zt_error *error);

/* Writes the projection's file into the sink; takes the fingerprints it needs first if
 * options.fingerprints is NULL. ZT_CORRUPT names the component whose digest is wrong or whose bytes
 * do not decode; ZT_UNSUPPORTED one that cannot be decoded or, with the target's rule and before
 * anything is written, one whose content the target's layout forbids; ZT_INVALID one whose content
 * cannot be converted (a negative index); else what sink or source returned. */
enum zt_status zt_model_convert(const struct zt_conversion *conversion, const struct zt_sink *sink,
                                struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
