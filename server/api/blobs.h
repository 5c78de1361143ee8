/* GET /v1/blobs/sha256/{hex}: a component's stored bytes by their SHA-256 (http-api, section 2). */
#ifndef API_BLOBS_H
#define API_BLOBS_H

#include "http/exchange/request.h"

enum outcome blob_get(struct request *request);

#endif
