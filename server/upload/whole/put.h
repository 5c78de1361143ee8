/* PUT /v1/models/{model}, PUT /files/{path}: a whole file.
 *
 *   RECEIVING --last byte--> FINISHING --published--> PUBLISHED
 *       |                        |
 *       +--store failed----------+--refused---------> FAILED
 *
 * If the connection is lost, all data is removed in every state.
 *
 * The body goes to an unnamed file as it arrives, and workers hash the written bytes. After the
 * last byte, a worker validates the file with the reader that serves it, checks its digests, and
 * publishes it. */
#ifndef UPLOAD_WHOLE_PUT_H
#define UPLOAD_WHOLE_PUT_H

#include "http/exchange/router.h"

void model_put_begin(struct request *request);
/* Handles a file at a path. The body and the end are the same. */
void file_put_begin(struct request *request);
enum outcome model_put_handle(struct request *request);

#endif
