/* What a target's query must be before anybody reads it; request.h has request_query. */
#ifndef HTTP_QUERY_H
#define HTTP_QUERY_H

#include <stdbool.h>

/* Whether every '%' of the query begins an escape. True without a query. */
bool query_is_well_formed(const char *target);

#endif
