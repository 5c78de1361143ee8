/* GET /v1/models and GET /v1/models/{model} (http-api, sections 2 and 3). */
#ifndef API_MODELS_H
#define API_MODELS_H

#include "http/exchange/request.h"

enum outcome models_list(struct request *request);
enum outcome model_get(struct request *request);

#endif
