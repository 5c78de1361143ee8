/* The common part of statistics.c and preview.c: reads which elements a request selects, and adds
 * the steps before the response. */
#ifndef API_NUMBERS_VIEW_H
#define API_NUMBERS_VIEW_H

#include "api/component.h"
#include "numbers/component_numbers.h"

struct numbers_view {
    struct component_view view; /* first: request->context points to both */
    struct zt_slice_tensor tensor;
    struct numbers_query order;
    /* Writes the response into the reply. May return WAITING after it has called request_work. */
    enum outcome (*answer)(struct request *request, const struct numbers_entry *entry);
    struct numbers_entry *entry; /* held; NULL until it is requested */
};

/* Finds object, component and slice or shard, and fills in the members above answer. size is the
 * size of the structure that begins with the view. Returns NULL if it has replied with a
 * problem. */
struct numbers_view *numbers_view_read(struct request *request, size_t size);

/* Returns true, having replied, if this many of the view's elements exceed
 * limits.statistics_bytes. */
bool numbers_view_is_too_large(struct request *request, const struct numbers_view *numbers,
                               uint64_t elements);

/* Sets ETag, date and caching, and adds the steps that verify the component, carry out the
 * computation, and call answer. suffix distinguishes this response from others about the same
 * elements. */
void numbers_view_prepare(struct request *request, struct numbers_view *numbers,
                          const char *suffix);

/* Reads a parameter that is a whole number from 1 to most; *out_value is unchanged if it is absent.
 * Returns false if it has replied. */
bool numbers_parameter(struct request *request, const char *name, uint32_t most,
                       uint32_t *out_value);

#endif
