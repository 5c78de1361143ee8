/* How the segments of an answer become a response of libmicrohttpd, by size and by what the page
 * cache holds. */
#ifndef HTTP_WIRE_SENDER_H
#define HTTP_WIRE_SENDER_H

#include "http/exchange/request.h"

struct MHD_Response;

/* Decides how the answer is sent, and sees to it that its beginning can be without waiting for a
 * disk: WAITING while a worker reads it. When it cannot be read the answer is a problem instead. */
enum outcome sender_load(struct request *request);

/* The response of the request's answer, to be destroyed by the caller; NULL when memory is out.
 * close: say so. */
struct MHD_Response *sender_response(struct request *request, bool close);

#endif
