/* Selects models by name: those that a client wants, or may see. Callers pass it down to other
 * modules. */
#ifndef BASE_NAME_FILTER_H
#define BASE_NAME_FILTER_H

#include <stdbool.h>

#include "zt/text.h"

/* passes may be called on any thread while context is valid. Zeroed: all names pass. */
struct name_filter {
    bool (*passes)(const void *context, struct zt_text name);
    const void *context;
};

static inline bool name_filter_passes(struct name_filter filter, struct zt_text name)
{
    return filter.passes == NULL || filter.passes(filter.context, name);
}

#endif
