/* The result of `verify` for a file, as JSON. */
#ifndef COMMANDS_JUDGEMENT_JSON_H
#define COMMANDS_JUDGEMENT_JSON_H

#include "files/judgement.h"

/* An object with a newline behind it. error: why the file is bad, or could not be opened, and the
 * judgement has no model; NULL: it is good. */
void judgement_print_json(const struct judgement *judgement, const struct zt_error *error,
                          FILE *stream);

#endif
