/* Verdicts about stored frames: a byte a component, there from the first one on. */
#include "derived/passthrough.h"

#include <stdlib.h>

#include "verify/verifier.h"
#include "zt/coding.h"

enum verdict { VERDICT_NONE, VERDICT_FIT, VERDICT_UNFIT };

bool passthrough_is_possible(const struct zt_component *component)
{
    /* What is swapped or turned once it is decompressed is not what a client would find. */
    if (component->big_endian || component->arrangement != NULL)
        return false;
    return component->encoding == ZT_ENCODING_ZSTD ||
           component->encoding == ZT_ENCODING_ZSTD_SEEKABLE;
}

bool passthrough_is_known(struct generation *generation, uint32_t component, bool *out_fit)
{
    const _Atomic(unsigned char) *verdicts = atomic_load(&generation->passthrough);
    unsigned char verdict = verdicts != NULL ? atomic_load(&verdicts[component]) : VERDICT_NONE;

    if (verdict == VERDICT_NONE)
        return false;
    /* What was found not to decode to what it should is no more right for being decoded by the
     * client. */
    *out_fit = verdict == VERDICT_FIT && !verifier_found_broken(generation, component);
    return true;
}

/* NULL when memory is out: then the next request walks again. */
static _Atomic(unsigned char) *verdicts_of(struct generation *generation)
{
    _Atomic(unsigned char) *there = atomic_load(&generation->passthrough);
    _Atomic(unsigned char) *made;

    if (there != NULL)
        return there;
    made = calloc(generation->model->component_count, sizeof(*made));
    /* Of two that made one at the same time the first is kept. */
    if (made != NULL && atomic_compare_exchange_strong(&generation->passthrough, &there, made))
        return made;
    free(made);
    return there;
}

bool passthrough_find(struct generation *generation, uint32_t component)
{
    const struct zt_component *stored = &generation->model->components[component];
    const struct zt_files files = generation_files(generation);
    _Atomic(unsigned char) *verdicts;
    bool fit;

    if (zt_zstd_fits_all(zt_files_source(&files, stored), stored, &fit, NULL) != ZT_OK)
        return false;
    verdicts = verdicts_of(generation);
    if (verdicts != NULL)
        atomic_store(&verdicts[component], fit ? VERDICT_FIT : VERDICT_UNFIT);
    return fit;
}

void passthrough_free(struct generation *generation)
{
    free(atomic_load(&generation->passthrough));
}
