/* Decides which stored files a client may read. */
#ifndef API_FILE_ACCESS_H
#define API_FILE_ACCESS_H

#include "http/exchange/request.h"

/* Returns true if a client may read the file: a model's file if it may read the model; a shard if
 * it may read a model that uses it; any other file if it may read a model of that name. The path
 * ends with NUL. From any thread while the request waits. */
bool client_may_read_file(const struct request *request, struct zt_text path);

#endif
