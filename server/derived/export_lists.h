/* The lists of a request for an export, which may be long: made once on a worker and shared by the
 * request and the plan. */
#ifndef DERIVED_EXPORT_LISTS_H
#define DERIVED_EXPORT_LISTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "digests/hash_queue.h"
#include "zt/text.h"

/* Names of objects, and SHA-256 of components that the client has; both sorted, each once. */
struct export_lists {
    atomic_uint references;
    uint8_t sha256[SHA256_BYTES]; /* of both lists: equal lists have equal digests */
    struct zt_text *names;
    size_t name_count;
    uint8_t (*have)[SHA256_BYTES];
    size_t have_count;
};

/* Copies both lists, in any order and with repetitions. Takes time proportional to their length.
 * Returns NULL if out of memory. */
struct export_lists *export_lists_new(const struct zt_text *names, size_t name_count,
                                      const uint8_t (*have)[SHA256_BYTES], size_t have_count);

void export_lists_hold(struct export_lists *lists);
/* Accepts NULL; void * for request_hold. */
void export_lists_release(void *lists);

/* Accept NULL, two empty lists. */
static inline bool export_lists_state(const struct export_lists *lists)
{
    return lists != NULL && lists->have_count > 0;
}
bool export_lists_have(const struct export_lists *lists, const uint8_t sha256[SHA256_BYTES]);
bool export_lists_name(const struct export_lists *lists, struct zt_text name);

#endif
