/* Requests of web pages: foreign ones may not write, and may read only what cors.origins lets them
 * (Fetch, section 3.2: the CORS protocol).
 *
 * Answers never say that credentials may be sent along (Access-Control-Allow-Credentials): a page
 * sends its token itself. */
#ifndef HTTP_EXCHANGE_CORS_H
#define HTTP_EXCHANGE_CORS_H

#include "http/exchange/request.h"

/* The most fields that cors_fields writes. */
#define CORS_FIELDS 5

/* The field names of answers that pages may read, in addition to those that they may read anyway.
 * A test compares it with openapi.json. */
extern const char cors_exposed[];

/* Replies with 403 to a write of a foreign page, and to a request that names the server by a
 * foreign host. After router_find. */
void cors_check(struct request *request);

/* Whether this is a preflight request of a page that may use the API. Browsers send it before some
 * requests, and report only its failure, not that of the request that it is about. */
bool cors_is_preflight(struct request *request);

/* Writes the fields of the answer that let a page read it, or answer its preflight request; returns
 * their number. */
unsigned cors_fields(struct request *request, struct field *out_fields);

/* What an answer varies by: vary, which may be NULL, and the origin if that decides about its
 * fields. NULL: by nothing. */
const char *cors_vary(struct request *request, const char *vary);

#endif
