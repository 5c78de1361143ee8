/* Globs: '*' matches any run of characters ('/' included), '?' one character, '[…]' one character
 * of a class ("[a-z]"; "[!0-9]" and "[^0-9]" match one outside it). Every other character matches
 * itself. Characters are UTF-8; in a name, a byte that is not valid UTF-8 counts as a character.
 *
 * All globs of a query are compiled into one set, which reads a name once: the cost of a match
 * depends on the total length of the globs and on the length of the name, not on the patterns. */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

#include "zt/status.h"

/* The maximum length of a glob in bytes. */
#define GLOB_MAX 1024
/* The maximum number of globs in a set, and of their bytes in total: a request target has no room
 * for more. A set takes at most 2.5 MB, and matching takes at most 132 word operations per
 * character of the name. */
#define GLOB_SET_MAX       64
#define GLOB_SET_BYTES_MAX 8192

/* Returns true if a text is a valid glob: UTF-8, not too long, every class closed and not empty. */
bool glob_is_valid(struct zt_text glob);

struct glob_set;

/* Compiles valid globs; the set does not refer to their texts. Takes microseconds for ordinary
 * globs and at most a few milliseconds. Returns NULL if out of memory or if the globs exceed the
 * limits. */
struct glob_set *glob_set_new(const struct zt_text *globs, size_t count);
/* Accepts NULL. */
void glob_set_free(struct glob_set *set);

/* Returns true if one of the globs matches the whole text. May be called on any thread. */
bool glob_set_matches(const struct glob_set *set, struct zt_text text);

/* Returns true if one of the globs can match a text that begins with this one. May be called on any
 * thread. */
bool glob_set_can_begin(const struct glob_set *set, struct zt_text beginning);

/* Returns true if one of the globs matches every text that begins with this one, because it ends in
 * a star. Globs that do so only together, such as [a-m]* and [!a-m]*, do not count. May be called
 * on any thread. */
bool glob_set_matches_all_below(const struct glob_set *set, struct zt_text beginning);

#endif
