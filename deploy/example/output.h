/* Files that appear under their names only when they are complete. */
#ifndef EXAMPLE_OUTPUT_H
#define EXAMPLE_OUTPUT_H

#include <stdbool.h>

#include "base/memory.h"

/* Writes the buffer's bytes to path.partial, syncs that file and renames it to path, so that
 * neither a reader nor a power failure finds half a file. False with errno; path is then as it
 * was. A buffer that failed to grow is not written: ENOMEM. */
bool output_publish(const struct zt_buffer *file, const char *path);

#endif
