/* DELETE /v1/models/{model} removes the files of a model of any format, and its shards. DELETE
 * /files/{path} removes exactly one file. */
#ifndef UPLOAD_WHOLE_DELETE_H
#define UPLOAD_WHOLE_DELETE_H

#include "http/exchange/request.h"

void model_delete_begin(struct request *request);
enum outcome model_delete_handle(struct request *request);

void file_delete_begin(struct request *request);
enum outcome file_delete_handle(struct request *request);

#endif
