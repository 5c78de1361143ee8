/* Making plans of exports, on workers (export_plan.h keeps them and knows who waits). */
#ifndef DERIVED_EXPORT_WORK_H
#define DERIVED_EXPORT_WORK_H

#include "derived/export_plan.h"

struct export_work;

/* What became of it, into the plan's own members. */
struct export_result {
    struct zt_file_plan *image;
    struct export_part *parts;
    uint32_t part_count;
    bool failed;
    enum export_failure failure;
    enum zt_slice_verdict verdict;
    struct zt_error error;
};

struct export_order {
    struct server *server;
    struct generation *generation; /* held as long as the work lives */
    const struct export_query *query;
    /* Called on a worker when a stage has ended, as the last thing that it does. */
    void (*ended)(void *context);
    /* Whether anybody still waits; from any worker. */
    bool (*wanted)(void *context);
    void *context;
};

/* NULL when memory is out. The query is borrowed. */
struct export_work *export_work_new(const struct export_order *order);
/* Takes NULL. */
void export_work_free(struct export_work *work);

/* The stages. Each is begun once, by any thread; ended is called once for each. */
void export_work_outline(struct export_work *work);
void export_work_prepare(struct export_work *work);

/* After a stage has ended. Image and parts become the caller's. */
void export_work_take(struct export_work *work, struct export_result *out_result);

#endif
