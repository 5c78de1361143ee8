/* A request's body that is a short JSON text or a form. It is kept in memory until it is
 * complete. */
#ifndef HTTP_EXCHANGE_JSON_BODY_H
#define HTTP_EXCHANGE_JSON_BODY_H

#include "http/exchange/request.h"

/* Attributes may be long, but longer ones should be components. */
#define JSON_BODY_MAX ((size_t)4 << 20)

/* Call it before the body: refuses an encoded body, or a declared length above the limit; otherwise
 * receives the body. Returns true if it has replied. */
bool json_body_refuse(struct request *request);
/* Does the same with another limit. */
bool json_body_refuse_above(struct request *request, size_t most);
/* Call it after the body: refuses a body that is too long. Returns true if it has replied. */
bool json_body_refuse_received(struct request *request);
/* Returns the body, valid as long as the request. May be called on any thread while the request
 * waits. */
struct zt_text json_body_text(const struct request *request);
/* Frees the body, which is empty afterwards: a response may take much longer than a request. */
void json_body_drop(struct request *request);

#endif
