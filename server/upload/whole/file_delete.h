/* DELETE /files/{path}: removes one file, and nothing besides. */
#ifndef UPLOAD_WHOLE_FILE_DELETE_H
#define UPLOAD_WHOLE_FILE_DELETE_H

#include "http/exchange/request.h"

void file_delete_begin(struct request *request);
enum outcome file_delete_handle(struct request *request);

#endif
