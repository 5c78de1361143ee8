/* Stored files as representations. */
#include "api/stored_reply.h"

#include <string.h>

void stored_file_reply(struct request *request, const struct stored_file *file)
{
    struct representation *reply = &request->reply;

    reply->media_type = "application/octet-stream";
    reply->cache_control = "no-cache";
    reply->ranges = true;
    reply->has_sha256 = file->has_sha256;
    memcpy(reply->sha256, file->sha256, sizeof(reply->sha256));
    representation_source(reply, file->source, 0, zt_source_size(file->source));
}
