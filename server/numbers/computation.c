/* Divides passes over elements among the workers. */
#include "numbers/computation.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

struct pass {
    const struct zt_elements *elements;
    const struct computing *computing;
    pthread_mutex_t lock; /* of error, and of counts in the second pass */
    struct zt_error *error;
    enum zt_status status;
    /* One of these is used. */
    struct zt_tally *tallies;
    struct statistics *statistics;
    const struct zt_preview *preview;
    double *cells;
};

static bool fail(struct pass *pass, const struct zt_error *error)
{
    pthread_mutex_lock(&pass->lock);
    if (pass->status == ZT_OK) {
        *pass->error = *error;
        pass->status = error->status;
    }
    pthread_mutex_unlock(&pass->lock);
    return false;
}

static bool is_wanted(struct pass *pass)
{
    const struct zt_cancellation *cancellation = &pass->computing->cancellation;
    struct zt_error error;

    if (cancellation->is_wanted == NULL || cancellation->is_wanted(cancellation->context))
        return true;
    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "no request is waiting for it any more");
    return fail(pass, &error);
}

static bool tally_piece(void *context, uint32_t index)
{
    struct pass *pass = context;
    struct zt_error error;

    if (!is_wanted(pass))
        return false;
    return zt_tally_piece(pass->elements, index, &pass->tallies[index], &error) == ZT_OK ||
           fail(pass, &error);
}

static bool count_piece(void *context, uint32_t index)
{
    struct pass *pass = context;
    struct statistics *statistics = pass->statistics;
    uint64_t counts[ZT_BINS_MAX] = {0};
    struct zt_error error;

    if (!is_wanted(pass))
        return false;
    if (zt_histogram_piece(pass->elements, index, &statistics->axis, counts, &error) != ZT_OK)
        return fail(pass, &error);
    pthread_mutex_lock(&pass->lock);
    for (unsigned bin = 0; bin < statistics->axis.bins; bin++)
        statistics->counts[bin] += counts[bin];
    pthread_mutex_unlock(&pass->lock);
    return true;
}

static bool reduce_row(void *context, uint32_t index)
{
    struct pass *pass = context;
    double *cells = pass->cells + (size_t)index * pass->preview->out_cols;
    struct zt_error error;

    return zt_preview_row(pass->preview, pass->elements, index, &pass->computing->cancellation,
                          cells, &error) == ZT_OK ||
           fail(pass, &error);
}

static enum zt_status run(struct pass *pass, uint32_t parts,
                          bool (*part)(void *context, uint32_t index))
{
    const struct parallel_work work = {.count = parts, .run = part, .context = pass};
    uint32_t done;

    pthread_mutex_init(&pass->lock, NULL);
    done = parallel_for(pass->computing->workers, &work);
    assert((done == parts) == (pass->status == ZT_OK));
    (void)done;
    pthread_mutex_destroy(&pass->lock);
    return pass->status;
}

static enum zt_status tally_all(struct pass *pass, uint32_t pieces, struct statistics *statistics)
{
    enum zt_status status;

    pass->tallies = calloc((size_t)pieces + 1, sizeof(*pass->tallies));
    if (pass->tallies == NULL)
        return zt_fail_memory(pass->error, "statistics");
    status = run(pass, pieces, tally_piece);
    for (uint32_t i = 0; status == ZT_OK && i < pieces; i++)
        zt_tally_merge(&statistics->tally, &pass->tallies[i], statistics->kind);
    free(pass->tallies);
    return status;
}

enum zt_status statistics_compute(const struct zt_elements *elements, unsigned bins,
                                  const struct computing *computing,
                                  struct statistics *out_statistics, struct zt_error *error)
{
    struct pass pass = {
        .elements = elements, .computing = computing, .error = error, .statistics = out_statistics};
    const uint64_t pieces = zt_elements_pieces(elements);
    enum zt_status status;

    memset(out_statistics, 0, sizeof(*out_statistics));
    out_statistics->kind = zt_number_kind(elements->dtype);
    out_statistics->count = elements->count;
    if (pieces >= UINT32_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "there are too many elements");
    status = tally_all(&pass, (uint32_t)pieces, out_statistics);
    if (status != ZT_OK)
        return status;
    out_statistics->has_histogram =
        zt_axis_make(&out_statistics->tally, out_statistics->kind, bins, &out_statistics->axis);
    return out_statistics->has_histogram ? run(&pass, (uint32_t)pieces, count_piece) : ZT_OK;
}

enum zt_status preview_compute(const struct zt_elements *elements, const struct zt_preview *preview,
                               const struct computing *computing, double *out_cells,
                               struct zt_error *error)
{
    struct pass pass = {.elements = elements,
                        .computing = computing,
                        .error = error,
                        .preview = preview,
                        .cells = out_cells};

    return run(&pass, preview->out_rows, reduce_row);
}
