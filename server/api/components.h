/* GET /v1/models/{model}/objects/{object}/{component}: the bytes (http-api, section 4). */
#ifndef API_COMPONENTS_H
#define API_COMPONENTS_H

#include "http/exchange/request.h"

enum outcome component_get(struct request *request);

#endif
