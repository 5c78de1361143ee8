/* What has arrived of an upload, as JSON. */
#ifndef UPLOAD_WRITER_WRITER_STATUS_H
#define UPLOAD_WRITER_WRITER_STATUS_H

#include "base/json_write.h"
#include "upload/writer/writer_session.h"

/* {"id","model","version","state","created","expires","received","attributes","objects": {name:
 * {"shape","format", "attributes","components": {name:
 * {"dtype","type","shape","encoding","length","uncompressed_length","sha256"}}}}}. May take long:
 * not on a loop. */
void writer_status_write(struct writer_session *session, struct json *json);

#endif
