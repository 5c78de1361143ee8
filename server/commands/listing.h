/* A model as a table: one line per component, and a line of totals. */
#ifndef COMMANDS_LISTING_H
#define COMMANDS_LISTING_H

#include <stdio.h>

#include "zt/model.h"

/* Columns fit their contents. Control characters in names are escaped. Nothing for a model without
 * objects. */
void listing_print(const struct zt_model *model, FILE *stream);
/* bytes: of all files of the model together. */
void listing_print_totals(const struct zt_model *model, uint64_t bytes, FILE *stream);

/* "2.2 MiB" */
void listing_format_size(uint64_t bytes, char *out_text, size_t size);

/* "999", "1.2 B" */
void listing_format_count(uint64_t count, char *out_text, size_t size);

#endif
