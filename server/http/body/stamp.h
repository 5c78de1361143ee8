/* What tells that a file has been written to, in the place where it is, since an answer was begun.
 * Its bytes may then be of before and of after. */
#ifndef HTTP_BODY_STAMP_H
#define HTTP_BODY_STAMP_H

#include "http/body/place.h"

/* Of a file's length and the time of its last change; being renamed, replaced or removed changes
 * neither. *out_bytes: the length; out_bytes may be NULL. The stamp of a source that is no file is
 * always the same. */
uint64_t file_stamp(const struct zt_source *file, uint64_t *out_bytes);

/* The same of what a SEGMENT_SOURCE is of. Of a file that is pinned only the length counts, not the
 * time: such a file is always being filled, and whoever pinned the bytes keeps them as they are. */
uint64_t segment_stamp(const struct segment *segment, uint64_t *out_bytes);

/* The same of all files that an answer reads directly. */
uint64_t answer_stamp(const struct answer *answer);

#endif
