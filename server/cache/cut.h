/* Files of blocks that somebody else has cut short while they are open.
 *
 * What was behind their new end reads as zeros once they are as long again, so first all blocks
 * are absent, and nobody who has found them here before still holds a pin. Until then nothing is
 * kept in the file, and what is asked for is read past it. */
#ifndef CACHE_CUT_H
#define CACHE_CUT_H

#include "cache/cache_state.h"

/* Without the lock. Looks at the length of an open file with a view. True: it is too short, and no
 * block of it is here any more. */
bool cut_is_seen(struct cached_file *file);

/* The same before a range is pinned. For small ranges a look is taken now and then. */
bool cut_is_seen_by_pin(struct cached_file *file, uint64_t length);

/* Without the lock; waits for the disk. Makes the file as long as it should be. False: somebody may
 * still be sending from it, or the disk fails. */
bool cut_mend(struct cached_file *file);

#endif
