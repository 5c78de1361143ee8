/* Finds files that share a model's name: a split or an index next to a file, or a file whose path
 * is not the usual one for the name. */
#ifndef CATALOG_NAMESAKES_H
#define CATALOG_NAMESAKES_H

#include "catalog/catalog_index.h"

/* Functions of the type catalog_finder: each returns a generation without a reference, or NULL. */

/* Find a split GGUF, and a file with a non-canonical extension
 * (model_path_has_noncanonical_extension). */
struct generation *namesakes_find_split(const struct catalog_index *index, struct zt_text name);
struct generation *namesakes_find_uppercase(const struct catalog_index *index, struct zt_text name);

/* Finds a joined model that another file with the name hides. */
struct generation *namesakes_find_shadowed(const struct catalog_index *index, struct zt_text name);

/* Find a pair of files of which one hides the other: the first by precedence, and the hidden
 * one. */
struct generation *namesakes_find_before(const struct catalog_index *index, struct zt_text name);
struct generation *namesakes_find_in_way(const struct catalog_index *index, struct zt_text name);

#endif
