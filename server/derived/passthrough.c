/* Keeps one verdict per component, in a side table that the first verdict creates. */
#include "derived/passthrough.h"

#include <assert.h>
#include <stdlib.h>

#include "verify/verifier.h"
#include "zt/coding.h"

enum verdict { VERDICT_NONE, VERDICT_FIT, VERDICT_UNFIT };

/* A generation's side table. */
struct passthrough {
    struct side_table base;
    _Atomic(unsigned char) verdicts[]; /* by component */
};

static struct passthrough *passthrough_of(const struct generation *generation)
{
    return (struct passthrough *)generation_side_table(generation, SIDE_TABLE_PASSTHROUGH);
}

static void free_passthrough(struct side_table *table, const struct generation *generation)
{
    (void)generation;
    free(table);
}

bool passthrough_is_known(struct generation *generation, uint32_t component, bool *out_fit)
{
    struct passthrough *table = passthrough_of(generation);
    unsigned char verdict = table != NULL ? atomic_load(&table->verdicts[component]) : VERDICT_NONE;

    if (verdict == VERDICT_NONE)
        return false;
    /* A component whose decoded bytes break a rule must not reach the client in encoded form
     * either. */
    *out_fit = verdict == VERDICT_FIT && !verifier_breaks_rule(generation, component);
    return true;
}

/* Returns NULL if out of memory; the next request then reads the frames again. */
static struct passthrough *attach(struct generation *generation)
{
    struct passthrough *table = passthrough_of(generation);

    if (table != NULL)
        return table;
    table =
        calloc(1, sizeof(*table) + generation->model->component_count * sizeof(table->verdicts[0]));
    if (table == NULL)
        return NULL;
    table->base.free = free_passthrough;
    return (struct passthrough *)generation_attach(generation, SIDE_TABLE_PASSTHROUGH,
                                                   &table->base);
}

bool passthrough_find(struct generation *generation, uint32_t component)
{
    const struct zt_component *stored = &generation->model->components[component];
    const struct zt_files files = generation_files(generation);
    struct passthrough *table;
    bool fit;

    assert(component < generation->model->component_count && passthrough_is_possible(stored));
    if (zt_zstd_fits_all(zt_files_source(&files, stored), stored, &fit, NULL) != ZT_OK)
        return false;
    table = attach(generation);
    if (table != NULL)
        atomic_store(&table->verdicts[component], fit ? VERDICT_FIT : VERDICT_UNFIT);
    return fit;
}
