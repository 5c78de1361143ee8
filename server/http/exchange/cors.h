/* Requests of web pages. Foreign pages may not write, and may read only what cors.origins allows
 * (Fetch, section 3.2: the CORS protocol).
 *
 * Answers never allow credentials (Access-Control-Allow-Credentials): a page sends its token
 * itself. */
#ifndef HTTP_EXCHANGE_CORS_H
#define HTTP_EXCHANGE_CORS_H

#include "http/exchange/request.h"

/* The maximum number of fields that cors_fields writes. */
#define CORS_FIELDS 5

/* Field names that pages may read in answers, in addition to those that are always readable. A test
 * compares the list with openapi.json. */
extern const char cors_exposed[];

/* Replies with 403 to a write of a foreign page, and to a request with a foreign host. Call it
 * after router_find. */
void cors_check(struct request *request);

/* Returns true if an OPTIONS is the preflight of a page that may use the API. Browsers send it
 * before some requests; if it fails, they report only that failure, not the actual request's. */
bool cors_is_preflight(struct request *request);

/* Writes the fields that let a page read the answer, or that answer its preflight request. Returns
 * their number. Like cors_vary, needed only if access->pages.allows_pages. */
unsigned cors_fields(struct request *request, struct field *out_fields);

/* Returns the Vary value of the answer: vary, which may be NULL, and Origin if the fields depend on
 * it. Returns NULL for no Vary. */
const char *cors_vary(struct request *request, const char *vary);

#endif
