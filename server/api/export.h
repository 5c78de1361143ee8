/* GET /v1/models/{model}/export: selected objects as one file of another format. */
#ifndef API_EXPORT_H
#define API_EXPORT_H

#include "http/exchange/request.h"

enum outcome export_get(struct request *request);

#endif
