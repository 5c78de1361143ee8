/* How long an exported file will be, before any of its bytes is read. */
#ifndef DERIVED_EXPORT_SIZE_H
#define DERIVED_EXPORT_SIZE_H

#include "derived/export_plan.h"

/* Makes the outline of an export that selects whole objects, and lays its file out. ZT_UNSUPPORTED:
 * the target cannot hold the selection, something cannot be decoded, or a length is not stated;
 * ZT_NO_MEMORY. On a worker; takes about a microsecond for each object. */
enum zt_status export_size(struct server *server, struct generation *generation,
                           const struct export_query *query, uint64_t *out_length,
                           struct zt_error *error);

#endif
