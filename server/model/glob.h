/* Globs over names of objects: '*' any run of characters ('/' included), '?' one character, '[…]' one of a class
 * ("[a-z]", "[!0-9]" or "[^0-9]" for what is not in it). Every other character stands for itself. Characters are those
 * of UTF-8, not bytes. */
#ifndef MODEL_GLOB_H
#define MODEL_GLOB_H

#include <stdbool.h>

#include "zt/status.h"

/* Longer patterns are refused: the cost of a match is bounded by pattern times name. */
#define GLOB_MAX 1024

/* Whether a text is a glob: UTF-8, not too long, every class closed and not empty. */
bool glob_is_valid(struct zt_text glob);

/* Whether the whole text matches. glob must be valid. */
bool glob_match(struct zt_text glob, struct zt_text text);

#endif
