/* Which files a pull may replace: only tensor files, so that a server that chooses the name of a
 * file cannot destroy anything else. */
#ifndef DOWNLOAD_REPLACEABLE_H
#define DOWNLOAD_REPLACEABLE_H

#include "zt/status.h"

/* Returns ZT_OK if there is no file at the path, or a tensor file: one of a known format, even if
 * damaged or cut off; an index of a model in several files; a git-LFS pointer; or an empty file or
 * one of zeros, which interrupted downloads leave. Otherwise returns ZT_ARGUMENT, also for other
 * known content (an ordinary ZIP archive, HDF5). */
enum zt_status replaceable_check(const char *path, struct zt_error *error);

#endif
