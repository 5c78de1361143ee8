/* The header fields of an answer, from its representation: written once, for whatever is sent. */
#ifndef HTTP_EXCHANGE_ANSWER_FIELDS_H
#define HTTP_EXCHANGE_ANSWER_FIELDS_H

#include "http/exchange/request.h"

/* Writes up to ANSWER_FIELDS (request_state.h) fields and returns how many. Content-Length, Date
 * and Connection are the HTTP library's. */
unsigned answer_fields_write(struct request *request, struct field *out_fields);

#endif
