/* GET /files/{path...}: a stored file's own bytes, unverified. */
#ifndef API_FILES_H
#define API_FILES_H

#include "http/exchange/request.h"

enum outcome files_get(struct request *request);

#endif
