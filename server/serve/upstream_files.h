/* The files that the configuration's upstreams name, and their globs: read and checked before a
 * mirror is opened or changed. */
#ifndef SERVE_UPSTREAM_FILES_H
#define SERVE_UPSTREAM_FILES_H

#include "config/config.h"

/* Tokens in the order of the upstreams; NULL: none. */
struct upstream_tokens {
    char *tokens[CONFIG_UPSTREAMS_MAX];
};

/* Reads the first line of each token file, and checks the globs and the files of authorities. On
 * failure returns false with one line in error and loads none. */
bool upstream_tokens_load(const struct config *config, struct upstream_tokens *out_tokens,
                          char *error, size_t error_size);

/* Overwrites and frees the texts. May be called again. */
void upstream_tokens_free(struct upstream_tokens *tokens);

/* Logs a warning for each token that other users or machines can read, and whether a proxy of the
 * environment is ignored. */
void upstream_tokens_warn(const struct config *config);

#endif
