/* The keys about web pages: origins and names of hosts, as browsers write them. */
#ifndef CONFIG_BROWSERS_H
#define CONFIG_BROWSERS_H

#include "config/config.h"

/* Checks the words of cors.origins and hosts. False with the key, the word and what is wrong. */
bool config_validate_browsers(const struct config *config, struct config_message *message);

#endif
