/* An answer as text, for a connection whose library believes that the body is still coming. */
#ifndef HTTP_WIRE_BARE_ANSWER_H
#define HTTP_WIRE_BARE_ANSWER_H

#include "http/exchange/request.h"

/* Sends the answer (request_state's, of memory alone, which is what uploads answer with),
 * Connection: close with it. False when not all of it went out. */
bool bare_answer_send(struct request *request, const char *reason);

#endif
