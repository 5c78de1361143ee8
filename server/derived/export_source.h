/* An exported file without a shared plan: its length, and its bytes as a source. The bytes are not
 * verified, so they may be measured or hashed, but never sent. */
#ifndef DERIVED_EXPORT_SOURCE_H
#define DERIVED_EXPORT_SOURCE_H

#include "derived/export_plan.h"

/* Computes the length of an export of whole objects from the stated lengths of its components.
 * Fails with ZT_UNSUPPORTED if the target cannot represent the selection, a component cannot be
 * decoded, or a length is not stated; or with ZT_NO_MEMORY. Call it on a worker; it takes about a
 * microsecond per object. */
enum zt_status export_size(struct server *server, struct generation *generation,
                           const struct export_query *query, uint64_t *out_length,
                           struct zt_error *error);

/* Opens the same file for reading on workers. Holds the generation and copies the query, which must
 * not contain texts. Closed like any source. */
enum zt_status export_source_open(struct server *server, struct generation *generation,
                                  const struct export_query *query, struct zt_source **out_source,
                                  struct zt_error *error);

/* Returns true if the file behind a source of export_source_open is unchanged since it was
 * opened. */
bool export_source_is_still(struct zt_source *source);

#endif
