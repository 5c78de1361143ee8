/* POST /v1/resumable with Upload-Concat: final. The parts' bytes are copied one after another into
 * a new upload, which is published before the answer; the parts end with it. If that fails, or the
 * process ends meanwhile, the parts stay as they are and nothing else is left. */
#ifndef UPLOAD_TUS_TUS_CONCAT_H
#define UPLOAD_TUS_TUS_CONCAT_H

#include "http/exchange/router.h"
#include "upload/tus/tus_creation.h"

/* creation was not refused so far; it is copied. */
void tus_concat_begin(struct request *request, const struct creation *creation);
/* Refuses the bytes of a body. */
void tus_concat_receive(struct request *request);
enum outcome tus_concat_handle(struct request *request);

#endif
