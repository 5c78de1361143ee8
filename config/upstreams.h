/* The key "upstreams": a list of servers whose repositories this one mirrors. */
#ifndef CONFIG_UPSTREAMS_H
#define CONFIG_UPSTREAMS_H

#include "config/config.h"

/* Leaves none. */
void config_upstreams_reset(struct config *config);

/* The next upstream of a configuration, with the defaults of all keys, or NULL with a message if
 * there are too many. It counts once config_upstreams_end has returned true. */
struct config_upstream *config_upstreams_begin(struct config *config, const char *origin,
                                               struct config_message *message);

/* Checks that upstream, and names it after its host if it has no name. */
bool config_upstreams_end(struct config *config, const char *origin,
                          struct config_message *message);

/* Adds upstreams by their URLs, with commas between them. A URL that is there already is left as it
 * is. */
bool config_upstreams_add_urls(struct config *config, const char *urls, const char *origin,
                               struct config_message *message);

/* Takes over the upstreams in force, except for the reloading keys of those that wanted has under
 * the same name. */
void config_upstreams_keep_fixed(struct config *wanted, const struct config *in_force);

/* Whether the upstreams differ in more than what reloads. */
bool config_upstreams_differ(const struct config *a, const struct config *b);

/* Whether a token that is sent to the upstream can be read on the way: http to another machine. */
bool config_upstream_exposes_token(const struct config_upstream *upstream);

#endif
