/* Paths by which a file names others in its folder or below it. */
#ifndef ZT_BASE_RELATIVE_PATH_H
#define ZT_BASE_RELATIVE_PATH_H

#include <stddef.h>

/* Cleans a path in place: drops "." and empty components, as in "./a//b", and sets the new length.
 * Returns NULL, or why the path does not name a file beside or below the one that states it: it is
 * empty, absolute, a folder's, leads upward, has a hidden component, a backslash or a control
 * character, or is not UTF-8. The words complete a sentence that begins with what has the path. */
const char *zt_relative_path_clean(char *path, size_t *length);

#endif
