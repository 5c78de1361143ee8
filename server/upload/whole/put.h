/* PUT /v1/models/{model}, PUT /files/{path}: a whole file. */
#ifndef UPLOAD_WHOLE_PUT_H
#define UPLOAD_WHOLE_PUT_H

#include "http/exchange/router.h"

void model_put_begin(struct request *request);
/* Handles a file at a path. The body and the end are the same. */
void file_put_begin(struct request *request);
enum outcome model_put_handle(struct request *request);

#endif
