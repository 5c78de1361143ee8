/* Converting into a file with several threads. */
#ifndef CONVERSION_PARALLEL_CONVERSION_H
#define CONVERSION_PARALLEL_CONVERSION_H

#include "conversion/output_file.h"
#include "zt/convert.h"

/* Sets the number of threads of later conversions: at most eight; 0, the default, means one for
 * each processor. Call it while no conversion is running. */
void parallel_conversion_set_jobs(unsigned jobs);

/* Writes the same file as zt_model_convert and fails as it does, with the failure that comes first
 * in its order. If the position of every component is known in advance, several threads read, check
 * and write components; otherwise one thread does, and zstd's threads compress. Progress is never
 * reported by two threads at once. No data remains buffered. output->failed is set if the output is
 * at fault. */
enum zt_status parallel_conversion_write(const struct zt_conversion *conversion,
                                         struct output_file *output, struct zt_error *error);

#endif
