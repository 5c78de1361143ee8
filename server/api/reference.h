/* The export format=reference: the positions of a model's arrays in its file, for zarr. */
#ifndef API_REFERENCE_H
#define API_REFERENCE_H

#include "http/exchange/request.h"

/* Returns true if the query requests it. */
bool reference_is_wanted(struct request *request);

/* Handles such an export. */
enum outcome reference_get(struct request *request);

#endif
