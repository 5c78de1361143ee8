/* The key base_path: below which path a proxy serves this server. Other keys that are paths follow
 * the same rules. */
#ifndef CONFIG_BASE_PATH_H
#define CONFIG_BASE_PATH_H

#include "config/config.h"

/* Checks that base_path is empty, or a path that addresses can begin with unchanged: "/a" or
 * "/a/b", of characters that clients do not escape, and not below one of the server's paths,
 * because requests come with it or without it. */
bool config_validate_base_path(const struct config *config, struct config_message *message);

/* The reason why a text is not such a path, or NULL. */
const char *config_fault_of_path(const char *path);

#endif
