/* Turns an answer's segments into a libmicrohttpd response. The way depends on the size and on
 * whether the bytes are in the page cache. */
#ifndef HTTP_WIRE_SENDER_H
#define HTTP_WIRE_SENDER_H

#include "http/exchange/request.h"

/* Answers up to this size are copied or mapped. */
#define SENDER_SMALL_BYTES ((uint64_t)64 << 10)
/* The longest piece of a file that the library sends from a mapping. */
#define SENDER_MAPPED_MOST ((uint64_t)4 << 20)

struct MHD_Response;

/* Decides how the answer is sent, and makes sure that its beginning can be sent without waiting for
 * a disk. Returns WAITING while a worker reads the beginning; call it again afterwards. If reading
 * fails, the answer becomes a problem. */
enum outcome sender_load(struct request *request);

/* The client has hung up: its answer no longer waits for bytes that are held back, if it has waited
 * for them that long. */
void sender_give_up(struct request *request, int64_t waited_ms);

/* Ends the sending of an answer, whether or not all of it was sent. Returns false if a worker is
 * still reading from the request, which readahead.c then frees. */
bool sender_end(struct request *request);

/* Returns a response for the request's answer, which the caller destroys; NULL if out of memory.
 * close: add "Connection: close". */
struct MHD_Response *sender_response(struct request *request, bool close);

#endif
