/* POST /v1/resumable with Upload-Concat: final. Copies the parts' bytes one after another into a
 * new upload, which is published before the response; the parts end with it. If that fails, or the
 * process ends, the parts are unchanged and the new upload is removed. */
#ifndef UPLOAD_TUS_TUS_CONCAT_H
#define UPLOAD_TUS_TUS_CONCAT_H

#include "http/exchange/router.h"
#include "upload/tus/tus_creation.h"

/* creation has passed all checks; it is copied. */
void tus_concat_begin(struct request *request, const struct creation *creation);
enum outcome tus_concat_handle(struct request *request);

#endif
