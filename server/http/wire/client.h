/* Who sends a request, as far as limits of one client go: the address of the other end of its
 * connection. */
#ifndef HTTP_WIRE_CLIENT_H
#define HTTP_WIRE_CLIENT_H

#include "http/exchange/request.h"

/* Any address in text, and NUL. */
#define CLIENT_SIZE 64

/* Empty when it cannot be told. */
void request_client(const struct request *request, char out_text[CLIENT_SIZE]);

#endif
