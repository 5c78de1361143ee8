/* The keys about web pages: origins and names of hosts, as browsers write them. */
#ifndef CONFIG_BROWSERS_H
#define CONFIG_BROWSERS_H

#include <stddef.h>

#include "config/config.h"

/* Checks the words of cors.origins and hosts. False with the key, the word and the reason. */
bool config_validate_browsers(const struct config *config, struct config_message *message);

/* Whether a text is a name or address (one of IPv6 in brackets), perhaps with ":port". */
bool config_is_host_and_port(const char *text, size_t length);

#endif
