/* A model as a table: one line a component, and a line of totals. */
#ifndef COMMANDS_LISTING_H
#define COMMANDS_LISTING_H

#include <stdio.h>

#include "zt/model.h"

/* Columns are as wide as their contents; nothing of a name can move the terminal's cursor. */
void listing_print(const struct zt_model *model, FILE *stream);

#endif
