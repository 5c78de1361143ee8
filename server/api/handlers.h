/* The handlers in the table of routes (routes.c), each in the file named here; docs/api.md
 * describes their responses. A handler fills in request->reply and returns READY, or returns
 * WAITING and is called again. */
#ifndef API_HANDLERS_H
#define API_HANDLERS_H

#include <stdio.h>

#include "http/exchange/request.h"

/* manifest.c: one model or one of its objects as JSON. */
enum outcome model_get(struct request *request);
enum outcome object_get(struct request *request);

/* models_list.c: a page of models. */
enum outcome models_list(struct request *request);

/* component.c: the bytes of a component. */
enum outcome component_get(struct request *request);

/* statistics.c, preview.c: statistics and a picture of a component's numbers. */
enum outcome statistics_get(struct request *request);
enum outcome preview_get(struct request *request);

/* export.c: selected objects as a file of another format. */
enum outcome export_get(struct request *request);
void export_body_begin(struct request *request);
enum outcome export_body_handle(struct request *request);

/* stored.c: stored bytes by SHA-256. */
enum outcome blob_get(struct request *request);

/* files.c, files_index.c: stored files by path, and folders. */
enum outcome files_get(struct request *request);
enum outcome files_redirect(struct request *request);
enum outcome files_index_get(struct request *request);

/* operations.c: verification, health, version, and the description of the API. */
enum outcome verification_get(struct request *request);
enum outcome verification_post(struct request *request);
enum outcome healthz_get(struct request *request);
enum outcome readyz_get(struct request *request);
enum outcome version_get(struct request *request);
enum outcome openapi_get(struct request *request);

/* metrics.c: the server's counters, for Prometheus. */
enum outcome metrics_get(struct request *request);

/* upstreams.c: the upstreams, and downloads of their repositories. */
enum outcome upstreams_list(struct request *request);
enum outcome repositories_get(struct request *request);
enum outcome repositories_delete(struct request *request);
enum outcome prefetch_get(struct request *request);
enum outcome prefetch_post(struct request *request);
/* Writes the counters of all upstreams; nothing if there are none. */
void upstreams_metrics_write(FILE *stream, const struct server *server);
/* "reached"; "away" if an upstream that is not offline does not answer; NULL without upstreams. */
const char *upstreams_state(const struct server *server);

/* pages.c: the root, the page of the viewer, and its files. */
enum outcome root_get(struct request *request);
enum outcome page_get(struct request *request);
enum outcome asset_get(struct request *request);

/* The text that openapi_get sends: openapi.json, embedded by the build (embed.cmake),
 * NUL-terminated. */
extern const char openapi_text[];
extern const size_t openapi_length;
extern const char openapi_etag[];

/* --- for exports: format=reference, which tells zarr where the arrays of a file are --- */

struct export_query;

/* Returns true if the query requests it. */
bool reference_is_wanted(struct request *request);

/* Handles such an export. */
enum outcome reference_get(struct request *request);

/* Does the same for a request that has its generation, and for a query of prefix, matches and
 * to_f32. The texts must live as long as the request. */
enum outcome reference_reply(struct request *request, const struct export_query *query);

#endif
