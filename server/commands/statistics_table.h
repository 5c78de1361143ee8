/* The table of `stats`: a line for each tensor, with a histogram as small bars. */
#ifndef COMMANDS_STATISTICS_TABLE_H
#define COMMANDS_STATISTICS_TABLE_H

#include <stdio.h>

#include "numbers/computation.h"

/* Bins of the histogram. */
#define STATISTICS_TABLE_BINS 16

struct statistics_table {
    FILE *stream;
    size_t name_width;
    size_t shape_width;
    size_t type_width;
    size_t extreme_width; /* of minimum and maximum */
    size_t moment_width;  /* of mean and standard deviation */
    bool is_utf8;         /* bars are characters of Unicode */
};

/* Prints the titles. Bars are of Unicode if the locale is. */
void statistics_table_begin(struct statistics_table *table, const struct zt_model *model,
                            FILE *stream);

/* Prints an object's line; statistics NULL: it has none. */
void statistics_table_row(const struct statistics_table *table, const struct zt_model *model,
                          const struct zt_object *object, const struct statistics *statistics);

#endif
