/* GET /v1/uploads: what is being uploaded at this moment, for an operator (http-api, section 6.2).
 */
#ifndef UPLOAD_SHARED_UPLOADS_H
#define UPLOAD_SHARED_UPLOADS_H

#include "http/exchange/request.h"

enum outcome uploads_list(struct request *request);

#endif
