/* Files of blocks that another program has truncated while they are open.
 *
 * The bytes after their new end read as zeros once they are extended again, so all blocks must
 * first be absent, and all earlier pins released. Until then the file keeps no blocks, and reads
 * bypass it. */
#ifndef CACHE_CUT_H
#define CACHE_CUT_H

#include "cache/cache_state.h"

/* Without the lock. Looks at the length of an open file with a view. True: it is too short, and no
 * block of it is here any more. */
bool cut_is_detected(struct cached_file *file);

/* The same before a range is pinned. For small ranges a look is taken now and then. */
bool cut_is_detected_by_pin(struct cached_file *file, uint64_t length);

/* Without the lock; waits for the disk. Makes the file as long as it should be. False: a response
 * may still be sending from it, or the disk fails. */
bool cut_mend(struct cached_file *file);

#endif
