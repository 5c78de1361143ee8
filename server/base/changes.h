/* Counts everything that may change an answer about models: models, their files, and facts about
 * their bytes. A cached answer is valid as long as the count is the same. */
#ifndef BASE_CHANGES_H
#define BASE_CHANGES_H

#include <stdint.h>

/* Call it once new answers reflect the change. May be called on any thread. */
void changes_note(void);

/* Returns the number of changes so far. Read it before making the answer. */
uint64_t changes_count(void);

#endif
