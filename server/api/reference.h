/* The export format=reference: where the bytes of a model's arrays are, for zarr. */
#ifndef API_REFERENCE_H
#define API_REFERENCE_H

#include "http/exchange/request.h"

/* Whether the query asks for it. */
bool reference_is_wanted(struct request *request);

/* The handler of such an export. */
enum outcome reference_get(struct request *request);

#endif
