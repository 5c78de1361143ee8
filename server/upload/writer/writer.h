/* The streaming writer's requests. */
#ifndef UPLOAD_WRITER_WRITER_H
#define UPLOAD_WRITER_WRITER_H

#include "http/exchange/router.h"

/* POST /v1/models/{model}/uploads */
void writer_create_begin(struct request *request);
enum outcome writer_create_handle(struct request *request);

/* GET, DELETE /v1/uploads/{id} */
void writer_status_begin(struct request *request);
enum outcome writer_status_handle(struct request *request);
void writer_delete_begin(struct request *request);
enum outcome writer_delete_handle(struct request *request);

/* PUT /v1/uploads/{id}/objects/{object} */
void writer_object_begin(struct request *request);
enum outcome writer_object_handle(struct request *request);

/* PUT /v1/uploads/{id}/objects/{object}/{component} */
void writer_put_begin(struct request *request);
enum outcome writer_put_handle(struct request *request);

/* POST /v1/uploads/{id}/commit */
void writer_commit_begin(struct request *request);
enum outcome writer_commit_handle(struct request *request);

/* --- shared by them --- */

struct json;
struct writer_session;

/* The limit of zTensor 2 for names. */
#define WRITER_ZT2_NAME_MAX_BYTES 1024

/* Finds the session of the path's first name, which the request then holds. Returns NULL if it has
 * replied with 403 (a write to a read-only server) or 404. */
struct writer_session *writer_resolve(struct request *request, bool is_write);

/* Writes the session as JSON: the received components, in the form of the manifest's JSON. */
void writer_status_write(struct writer_session *session, struct json *json);

#endif
