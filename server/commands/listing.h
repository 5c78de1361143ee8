/* A model as a table: one line per component, and a line of totals. */
#ifndef COMMANDS_LISTING_H
#define COMMANDS_LISTING_H

#include <stdio.h>

#include "zt/model.h"

/* bytes: of all files of the model together. Columns fit their contents. Control characters in
 * names are escaped. */
void listing_print(const struct zt_model *model, uint64_t bytes, FILE *stream);

#endif
