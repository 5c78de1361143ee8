/* GET /openapi.json: openapi.json of this folder, with the program's version in it, as the build
 * puts it into the program (embed.cmake). Whoever adds a route describes it there; a test compares
 * both. */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

#include "http/exchange/request.h"

extern const char openapi_text[]; /* NUL-terminated */
extern const size_t openapi_length;
extern const char openapi_etag[];

enum outcome openapi_get(struct request *request);

#endif
