/* Which format a pull asks the server for. */
#ifndef TRANSFERS_PULL_FORMAT_H
#define TRANSFERS_PULL_FORMAT_H

#include "client/model_address.h"

/* The format that the extension of -o asks for, as convert's OUT does, where the server can make it
 * of the model; NULL: none. */
const char *pull_format_of(const char *path);

/* Whether -o's extension asks for a format that the server has to make: the URL names a model whose
 * file has another extension. */
bool pull_format_differs(const char *url, const char *path, const struct model_file *file);

#endif
