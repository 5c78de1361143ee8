/* Counts looks at the store that failed because of a system error, so that it is unknown which
 * files exist. */
#ifndef CATALOG_FAILED_LOOKUPS_H
#define CATALOG_FAILED_LOOKUPS_H

#include "catalog/generation.h"

/* Returns how often catalog_update, or a function that calls it, has failed on this thread because
 * of a system error (EIO, EMFILE, …). In that case it returns the previous state, or NULL, which
 * says nothing about the files that exist now. A writer compares the count before and after its
 * looks. */
uint64_t failed_lookups_count(void);
void failed_lookups_note(void);

/* Counts a failed look, and returns true, if a system error leaves it unknown whether the opened
 * file, or a file that belongs to it, exists. A file without read permission does not count, since
 * no later look could read it. */
bool failed_lookups_note_if(const struct generation *opened);

#endif
