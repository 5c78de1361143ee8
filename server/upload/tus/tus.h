/* tus 1.0.0 (https://tus.io/protocols/resumable-upload) at /v1/resumable: core, creation,
 * creation-with-upload, checksum, expiration, termination. */
#ifndef UPLOAD_TUS_TUS_H
#define UPLOAD_TUS_TUS_H

#include "http/exchange/router.h"

#define TUS_VERSION "1.0.0"

/* POST /v1/resumable (tus_create.c) */
void tus_create_begin(struct request *request);
enum outcome tus_create_handle(struct request *request);

/* /v1/resumable/{id} (tus.c) */
enum outcome tus_head_handle(struct request *request);
void tus_patch_begin(struct request *request);
enum outcome tus_patch_handle(struct request *request);
void tus_delete_begin(struct request *request);
enum outcome tus_delete_handle(struct request *request);

/* POST there, for clients that cannot send PATCH or DELETE: X-HTTP-Method-Override. */
void tus_override_begin(struct request *request);
enum outcome tus_override_handle(struct request *request);

/* The answer to OPTIONS at either path. */
void tus_options(struct request *request);

#endif
