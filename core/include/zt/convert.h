/* Converting: a model of one format into a file of another, its bytes checked on the way.
 *
 * Every digest that the source states is compared with the bytes that are read, so that nothing
 * damaged is passed on. Memory follows the number of components, never their size; only telling
 * that coordinates differ, where a layout of source or target promises it, takes a word for each,
 * 512 MiB at most. */
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
    /* files[0] is the model's own, files[n] shard n - 1. NULL where it is not to be had:
     * ZT_NOT_FOUND if it is needed. */
    struct zt_source *const *files;
    struct zt_writer_options options;
    /* Told of decoded bytes as they are read; may be NULL. */
    const struct zt_progress *progress;
    /* The source's digests were compared already, what is encoded decodes, and the bytes are the
     * same still: that is not looked at again, and a digest that is what the target states is taken
     * over, so that nothing is read for it. */
    bool trusted;
};

/* How many decoded bytes zt_model_convert will tell its progress of; an estimate where lengths are
 * not known. */
uint64_t zt_conversion_work(const struct zt_conversion *conversion);

/* Reads every component once: its length and digest as the target needs them (zt_target_fingerprint), and
 * which are the same bytes. The file must not change afterwards. *out_facts is freed with free().
 * Errors as zt_model_convert's. */
enum zt_status zt_fingerprints_take(const struct zt_conversion *conversion,
                                    struct zt_fingerprint **out_facts, struct zt_error *error);

/* The two halves of zt_fingerprints_take, for callers who gather by several threads: one component,
 * which is then the same as no other; and, once all are there, which are the same bytes, where the
 * target shares them. */
enum zt_status zt_fingerprint_take(const struct zt_conversion *conversion, uint32_t component,
                                   struct zt_fingerprint *out_fact, struct zt_error *error);
enum zt_status zt_fingerprints_match(const struct zt_conversion *conversion,
                                     struct zt_fingerprint *fingerprints, struct zt_error *error);

/* The content rules of source and target (docs/converting.md, Damage), which zt_model_convert
 * checks by itself. Reads what the rules are about. ZT_INVALID or ZT_CORRUPT where the source
 * breaks its own rules; ZT_UNSUPPORTED, with the target's rule, where an object is right as it is
 * but would break those of the layout it gets. What cannot be judged passes. Errors name the object
 * and component of the source. */
enum zt_status zt_conversion_check(const struct zt_conversion *conversion, struct zt_error *error);

/* Writes the projection's file into the sink; gathers the fingerprints it needs first where options.fingerprints
 * is NULL. ZT_CORRUPT names the component whose digest is wrong or whose bytes do not decode;
 * ZT_UNSUPPORTED one that cannot be decoded, or, with the target's rule and before the sink gets
 * anything, one whose content the target's layout forbids; ZT_INVALID one whose content cannot be
 * converted (a negative index); what sink or source gave back. */
enum zt_status zt_model_convert(const struct zt_conversion *conversion, const struct zt_sink *sink,
                                struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
