/* Logs files that cannot be served. The update lock must be held. */
#ifndef CATALOG_CATALOG_LOG_H
#define CATALOG_CATALOG_LOG_H

#include "catalog/catalog_content.h"

/* Logs once why a file is not served, unless it was modified so recently that it may still be being
 * written. */
void catalog_log_if_settled(struct catalog_content *content, struct generation *generation);

/* Logs once each file that another file with the same name hides. */
void catalog_log_shadowed(const struct catalog_content *content, const struct generation *added);

#endif
