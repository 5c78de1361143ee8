/* An exported file without a plan that is shared: its length, and its bytes as a source. Nothing is
 * verified, so they are for who measures or hashes them, and are never sent. */
#ifndef DERIVED_EXPORT_SOURCE_H
#define DERIVED_EXPORT_SOURCE_H

#include "derived/export_plan.h"

/* Lays an export of whole objects out by the lengths that its components state. ZT_UNSUPPORTED: the
 * target cannot hold the selection, something cannot be decoded, or a length is not stated;
 * ZT_NO_MEMORY. On a worker; takes about a microsecond for each object. */
enum zt_status export_size(struct server *server, struct generation *generation,
                           const struct export_query *query, uint64_t *out_length,
                           struct zt_error *error);

/* The same, to be read: for workers. Holds the generation; the query is copied, and has no texts.
 * Closed as every source. */
enum zt_status export_source_open(struct server *server, struct generation *generation,
                                  const struct export_query *query, struct zt_source **out_source,
                                  struct zt_error *error);

/* Whether the file that a source of export_source_open is made from is still as it was opened. */
bool export_source_is_still(struct zt_source *source);

#endif
