#include "catalog/namesakes.h"

/* Returns the first generation with this name that fits and is not `but`. */
static struct generation *find_fitting(const struct catalog_index *index, struct zt_text name,
                                       const struct generation *but,
                                       bool (*fits)(const struct generation *generation))
{
    size_t at = catalog_index_lower_bound(index, name);

    for (; at < index->count && zt_text_equal(generation_name(index->by_name[at]), name); at++)
        if (index->by_name[at] != but && fits(index->by_name[at]))
            return index->by_name[at];
    return NULL;
}

static bool is_uppercase(const struct generation *generation)
{
    return model_path_has_noncanonical_extension(generation->path);
}

static bool is_joined(const struct generation *generation)
{
    return generation->is_joined;
}

struct generation *namesakes_find_split(const struct catalog_index *index, struct zt_text name)
{
    return find_fitting(index, name, NULL, generation_is_split);
}

struct generation *namesakes_find_uppercase(const struct catalog_index *index, struct zt_text name)
{
    return find_fitting(index, name, NULL, is_uppercase);
}

struct generation *namesakes_find_shadowed(const struct catalog_index *index, struct zt_text name)
{
    return find_fitting(index, name, catalog_index_find_name(index, name), is_joined);
}

/* A split does not occupy its name, since its parts have other names. */
static bool is_own_file(const struct generation *generation)
{
    return !generation_is_split(generation) && !generation_is_not_a_model(generation);
}

struct generation *namesakes_find_before(const struct catalog_index *index, struct zt_text name)
{
    return namesakes_find_shadowed(index, name) != NULL
               ? catalog_index_find_name(index, name)
               : find_fitting(index, name, NULL, is_own_file);
}

struct generation *namesakes_find_in_way(const struct catalog_index *index, struct zt_text name)
{
    struct generation *shadowed = namesakes_find_shadowed(index, name);

    return shadowed != NULL
               ? shadowed
               : find_fitting(index, name, namesakes_find_before(index, name), is_own_file);
}
