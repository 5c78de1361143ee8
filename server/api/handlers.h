/* The handlers that routes.c names, each in the file given here; the sections are those of
 * http-api. A handler fills request->reply and returns READY, or returns WAITING and is called
 * again. */
#ifndef API_HANDLERS_H
#define API_HANDLERS_H

#include "http/exchange/request.h"

/* manifest.c: one model or one of its objects as JSON (section 3). */
enum outcome model_get(struct request *request);
enum outcome object_get(struct request *request);

/* models_list.c: a page of models (section 2). */
enum outcome models_list(struct request *request);

/* component.c: the bytes of a component (section 4). */
enum outcome component_get(struct request *request);

/* export.c: selected objects as a file of another format (section 5). */
enum outcome export_get(struct request *request);

/* stored.c: stored bytes by SHA-256, and stored files by path (section 2). */
enum outcome blob_get(struct request *request);
enum outcome files_get(struct request *request);

/* operations.c: verification (section 2), and what operators ask (section 8). */
enum outcome verification_get(struct request *request);
enum outcome verification_post(struct request *request);
enum outcome healthz_get(struct request *request);
enum outcome readyz_get(struct request *request);
enum outcome version_get(struct request *request);
enum outcome openapi_get(struct request *request);

/* What openapi_get sends: openapi.json, embedded by the build (embed.cmake), NUL-terminated. */
extern const char openapi_text[];
extern const size_t openapi_length;
extern const char openapi_etag[];

#endif
