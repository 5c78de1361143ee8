/* For operators (http-api, section 8): is it alive, is it ready, which version is it. */
#ifndef API_OPERATIONS_H
#define API_OPERATIONS_H

#include "http/exchange/request.h"

enum outcome healthz_get(struct request *request);
enum outcome readyz_get(struct request *request);
enum outcome version_get(struct request *request);

#endif
