/* Names of models at a revision, "weights@v1", as text in a URL. */
#ifndef HTTP_FIELDS_REVISION_NAME_H
#define HTTP_FIELDS_REVISION_NAME_H

#include <stdbool.h>

#include "zt/text.h"

/* Splits an encoded name at the last '@' that is not escaped. Returns false if there is none, if
 * one side is empty, or if a '/' follows: the '/' in a branch must be escaped, and
 * "org/model@COMMIT/weights" is itself the name of a model. The texts are borrowed and encoded. */
bool revision_name_split(struct zt_text raw, struct zt_text *out_model,
                         struct zt_text *out_revision);

#endif
