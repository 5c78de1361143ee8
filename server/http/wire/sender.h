/* From the segments of an answer to a response of libmicrohttpd, by size and by what the page cache
 * holds. */
#ifndef HTTP_WIRE_SENDER_H
#define HTTP_WIRE_SENDER_H

#include "http/exchange/request.h"

struct MHD_Response;

/* Decides how the answer is sent, and makes sure that its beginning can be sent without waiting for
 * a disk. WAITING while a worker reads the beginning; call it again afterwards. If that cannot be
 * read, the answer becomes a problem. */
enum outcome sender_load(struct request *request);

/* The response for the request's answer, which the caller destroys. close: with Connection: close.
 * NULL if out of memory. */
struct MHD_Response *sender_response(struct request *request, bool close);

/* The same with a copy of the bytes, which may outlive the request. The answer has at most one
 * segment, which can be sent without waiting. NULL also if its file cannot be read. */
struct MHD_Response *sender_copy(struct request *request);

/* Ends the use of a response of sender_copy. */
void sender_release(struct MHD_Response *response);

#endif
