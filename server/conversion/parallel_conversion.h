/* Converting into a file with several threads. */
#ifndef CONVERSION_PARALLEL_CONVERSION_H
#define CONVERSION_PARALLEL_CONVERSION_H

#include "conversion/output_file.h"
#include "zt/convert.h"

/* How many threads conversions take, from now on: at most eight; 0: one for each processor, which
 * is the default. To be called while there is no conversion. */
void parallel_conversion_set_jobs(unsigned jobs);

/* Writes what zt_model_convert writes and fails as it does, with the failure that comes first in
 * its order. Where the place of every component is known before it is written, components are read,
 * checked and written by several threads; otherwise by one, and compressed by threads of zstd's.
 * Progress is never reported by two threads at once. Nothing remains buffered; output->failed is
 * set if the output is at fault. */
enum zt_status parallel_conversion_write(const struct zt_conversion *conversion,
                                         struct output_file *output, struct zt_error *error);

#endif
