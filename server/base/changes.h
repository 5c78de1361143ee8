/* Counts whatever may change an answer about models: which there are, their files, what is known of
 * their bytes. An answer that is remembered holds as long as the count. */
#ifndef BASE_CHANGES_H
#define BASE_CHANGES_H

#include <stdint.h>

/* To be called once the change shows in answers that are made from then on. From any thread. */
void changes_note(void);

/* The number of changes so far; to be read before the answer is made. */
uint64_t changes_count(void);

#endif
