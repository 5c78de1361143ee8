/* Decides which format a pull requests from the server. */
#ifndef TRANSFERS_PULL_FORMAT_H
#define TRANSFERS_PULL_FORMAT_H

#include "client/model_address.h"

/* Returns the format for the extension in -o, as for convert's OUT, if the server can convert the
 * model to it; NULL otherwise. */
const char *pull_format_of(const char *path);

/* Returns true if the extension in -o needs a conversion by the server: the URL names a model whose
 * file has another extension. */
bool pull_format_differs(const char *url, const char *path, const struct model_file *file);

#endif
