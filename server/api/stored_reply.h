/* Replies with stored files of any kind. */
#ifndef API_STORED_REPLY_H
#define API_STORED_REPLY_H

#include "http/exchange/request.h"
#include "tree/stored_file.h"

/* Makes a file the reply: bytes, length, ranges, Last-Modified, and SHA-256 if known, but not the
 * ETag. The request must hold the file. A digest of it is only sent if no program writes to it at
 * the same time. */
void stored_file_reply(struct request *request, const struct stored_file *file);

/* Returns the media type for a path's extension: JSON, plain text, or bytes. It is never a type
 * that browsers execute, because any client may have uploaded the file. */
const char *stored_media_type(struct zt_text path);

/* Tells browsers to use exactly the stated media type, and to execute no part of the response. */
void stored_reply_fields(struct request *request);

/* Returns the time for Last-Modified: in whole seconds, at most now (RFC 9110 section 8.8.2.1). */
time_t stored_modified(int64_t modified_ns);

#endif
