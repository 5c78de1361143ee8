/* The names of arrays in NPZ archives. */
#ifndef ZT_NUMPY_NPZ_NAME_H
#define ZT_NUMPY_NPZ_NAME_H

#include <stdbool.h>

#include "base/memory.h"

#define NPZ_SUFFIX ".npy"

/* Whether the name of a member promises an array. */
bool npz_name_promises_array(struct zt_text member);

/* Makes the object's name from a member's: without ".npy", percent-encoding undone. It is borrowed
 * from member or, if anything is decoded, in the arena. It may be empty and need not be UTF-8.
 * ZT_LIMIT, ZT_NO_MEMORY. */
enum zt_status npz_name_read(struct zt_text member, struct zt_arena *arena,
                             struct zt_text *out_name, struct zt_error *error);

#endif
