/* Which stored files a client may see. */
#ifndef API_FILE_SIGHT_H
#define API_FILE_SIGHT_H

#include "http/exchange/request.h"

/* A model's file is seen by whoever may see the model, and its shards by whoever may see a model
 * that they belong to; another file by whoever may see a model of its name. The path ends with NUL.
 * From any thread while the request waits. */
bool file_is_seen(const struct request *request, struct zt_text path);

#endif
