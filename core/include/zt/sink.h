/* Where bytes are written, front to back: a file, memory, a hasher, the next stage of a
 * pipeline. */
#ifndef ZT_SINK_H
#define ZT_SINK_H

#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_sink {
    /* Takes length bytes, at least one. On failure it fills error, and the writer stops and returns
     * the same status. */
    enum zt_status (*take)(void *context, const void *bytes, size_t length, struct zt_error *error);
    void *context;
};

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
