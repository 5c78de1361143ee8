/* A request for statistics or a preview: statistics.c and preview.c answer it. This is what they
 * share: which elements are asked for, and the steps before the answer. */
#ifndef API_NUMBERS_VIEW_H
#define API_NUMBERS_VIEW_H

#include "api/component.h"
#include "numbers/findings.h"

struct numbers_view {
    struct component_view view; /* first: request->context points to both */
    struct zt_slice_tensor tensor;
    struct finding_order order;
    /* Puts the answer into the reply. May return WAITING once request_work was called. */
    enum outcome (*answer)(struct request *request, const struct finding *finding);
    const struct finding *finding; /* NULL until it is made */
};

/* Finds object, component and slice or shard, and fills in the members above answer. size is that
 * of the structure which begins with the view. NULL: replied with a problem. */
struct numbers_view *numbers_view_read(struct request *request, size_t size);

/* Whether so many of the view's elements exceed limits.statistics_bytes; true: replied. */
bool numbers_view_is_too_large(struct request *request, const struct numbers_view *numbers,
                               uint64_t elements);

/* Sets tag, date and caching, and adds the steps that verify the component, have the order carried
 * out, and call answer. suffix tells this answer from others about the same elements. */
void numbers_view_prepare(struct request *request, struct numbers_view *numbers,
                          const char *suffix);

/* A parameter that is a whole number from 1 to most; *out_value stays if it is absent. False:
 * replied. */
bool numbers_parameter(struct request *request, const char *name, uint32_t most,
                       uint32_t *out_value);

#endif
