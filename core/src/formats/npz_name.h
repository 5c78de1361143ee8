/* Names of NPZ entries as names of objects: without ".npy", and what a writer had to percent-encode
 * decoded again. */
#ifndef ZT_FORMATS_NPZ_NAME_H
#define ZT_FORMATS_NPZ_NAME_H

#include "base/arena.h"
#include "formats/zip.h"

#define NPZ_SUFFIX ".npy"

bool npz_name_ends(const struct zip_entry *entry, const char *suffix);

/* The object's name, borrowed from the entry or, where something is decoded, in the arena. The
 * entry's name ends in NPZ_SUFFIX. Rule "npz §Names Name": it is empty, holds a NUL, or is not
 * UTF-8. */
enum zt_status npz_name_read(const struct zip_entry *entry, struct zt_arena *arena,
                             struct zt_text *out_name, struct zt_error *error);

#endif
