/* The export format=reference: the positions of a model's arrays in its file, for zarr. */
#ifndef API_REFERENCE_H
#define API_REFERENCE_H

#include "derived/export_plan.h"
#include "http/exchange/request.h"

/* Returns true if the query requests it. */
bool reference_is_wanted(struct request *request);

/* Handles such an export. */
enum outcome reference_get(struct request *request);

/* Does the same for a request that has its generation, and for a query of prefix, matches and
 * to_f32. The texts must live as long as the request. */
enum outcome reference_reply(struct request *request, const struct export_query *query);

#endif
