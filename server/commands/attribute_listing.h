/* The attributes of a model as `ls` shows them below its table. */
#ifndef COMMANDS_ATTRIBUTE_LISTING_H
#define COMMANDS_ATTRIBUTE_LISTING_H

#include <stdio.h>

#include "zt/model.h"

/* A table of names and values, in which long ones are cut; nothing if there are no attributes. */
void attribute_listing_print(const struct zt_model *model, FILE *stream);

#endif
