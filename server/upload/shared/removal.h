/* DELETE /v1/models/{model}: the files of a model, whatever its format, and its shards (http-api,
 * section 2). */
#ifndef UPLOAD_SHARED_REMOVAL_H
#define UPLOAD_SHARED_REMOVAL_H

#include "http/exchange/request.h"

void model_delete_begin(struct request *request);
enum outcome model_delete_handle(struct request *request);

#endif
