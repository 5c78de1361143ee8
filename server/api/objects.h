/* GET /v1/models/{model}/objects/{object}: one object of the manifest. */
#ifndef API_OBJECTS_H
#define API_OBJECTS_H

#include "http/exchange/request.h"

enum outcome object_get(struct request *request);

#endif
