/* Stored files of any kind as answers. */
#ifndef API_STORED_REPLY_H
#define API_STORED_REPLY_H

#include "http/exchange/request.h"
#include "tree/stored_file.h"

/* Makes a file the reply: bytes, length, ranges, Last-Modified, SHA-256 if it is known; not the
 * ETag. The request must hold the file. A digest is only made of it if nobody writes to it
 * meanwhile. */
void stored_file_reply(struct request *request, const struct stored_file *file);

/* The media type by the extension of a path: JSON, plain text, or bytes. Never one that a browser
 * would execute: what is stored may have been uploaded by anybody. */
const char *stored_media_type(struct zt_text path);

/* Tells browsers to take the media type as it is stated, and to run nothing of the answer. */
void stored_reply_fields(struct request *request);

/* For Last-Modified: in whole seconds, at most now (RFC 9110 section 8.8.2.1). */
time_t stored_modified(int64_t modified_ns);

#endif
