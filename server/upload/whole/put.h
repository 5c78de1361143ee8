/* PUT /v1/models/{model}, PUT /files/{path}: a whole file.
 *
 *   RECEIVING --last byte--> FINISHING --published--> PUBLISHED
 *       |                        |
 *       +--store failed----------+--refused---------> FAILED
 *
 * A lost connection leaves nothing behind, whatever the state.
 *
 * The body goes to an unnamed file as it arrives; workers follow and hash what was written. After
 * the last byte a worker validates the file with the reader that serves it, checks its digests, and
 * publishes it. */
#ifndef UPLOAD_WHOLE_PUT_H
#define UPLOAD_WHOLE_PUT_H

#include "http/exchange/router.h"

void model_put_begin(struct request *request);
/* Of a file at a path of its own. The body (whole_body.h) and the end are the same. */
void file_put_begin(struct request *request);
enum outcome model_put_handle(struct request *request);

#endif
