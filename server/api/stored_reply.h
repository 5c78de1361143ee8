/* A stored file of any kind as an answer. */
#ifndef API_STORED_REPLY_H
#define API_STORED_REPLY_H

#include "http/exchange/request.h"
#include "tree/stored_file.h"

/* Fills in the bytes, the digest if it is known, and how they may be requested; not the etag. The
 * request must hold the file. */
void stored_file_reply(struct request *request, const struct stored_file *file);

#endif
