/* Globs over names of objects: '*' any run of characters ('/' included), '?' one character, '[…]'
 * one of a class ("[a-z]", "[!0-9]" or "[^0-9]" for what is not in it). Every other character
 * stands for itself. Characters are those of UTF-8, not bytes; in a name, a byte that belongs to
 * none counts as one.
 *
 * All globs of a question are compiled into one set, which goes over a name once: what a match
 * costs depends on the lengths of the globs together and of the name, not on what they look like.
 */
#ifndef DERIVED_GLOB_H
#define DERIVED_GLOB_H

#include <stdbool.h>

#include "zt/status.h"

/* Bytes of one glob. */
#define GLOB_MAX 1024
/* Globs of a set, and bytes of them together: no target of a request holds more. A set takes 2.5 MB
 * at most, and a character of a name no more than 132 steps on words of it. */
#define GLOB_SET_MAX       64
#define GLOB_SET_BYTES_MAX 8192

/* Whether a text is a glob: UTF-8, not too long, every class closed and not empty. */
bool glob_is_valid(struct zt_text glob);

struct glob_set;

/* Compiles valid globs, which it does not keep: microseconds for ordinary ones, some milliseconds
 * for the worst. NULL when memory is out, or there are more than a set can have. */
struct glob_set *glob_set_new(const struct zt_text *globs, size_t count);
/* Takes NULL. */
void glob_set_free(struct glob_set *set);

/* Whether one of the globs matches the whole text. The set's own memory is written: one thread at a
 * time. */
bool glob_set_matches(struct glob_set *set, struct zt_text text);

#endif
