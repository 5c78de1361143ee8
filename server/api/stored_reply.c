/* Turns an open file into a representation. */
#include "api/stored_reply.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"

time_t stored_modified(int64_t modified_ns)
{
    /* Rounds down, also before 1970. */
    const time_t seconds =
        (time_t)(modified_ns / CLOCK_NS_PER_S - (modified_ns % CLOCK_NS_PER_S < 0));
    const time_t now = time(NULL);

    return seconds < now ? seconds : now;
}

const char *stored_media_type(struct zt_text path)
{
    static const struct {
        const char *extension;
        const char *type;
    } types[] = {{".json", "application/json"},
                 {".txt", "text/plain; charset=utf-8"},
                 {".md", "text/plain; charset=utf-8"},
                 {".jinja", "text/plain; charset=utf-8"}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const size_t length = strlen(types[i].extension);

        if (path.length > length &&
            strncasecmp(path.bytes + path.length - length, types[i].extension, length) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

void stored_reply_fields(struct request *request)
{
    representation_field(&request->reply, "X-Content-Type-Options", "nosniff");
    representation_field(&request->reply, "Content-Security-Policy",
                         "sandbox; default-src 'none'; frame-ancestors 'none'");
}

void stored_file_reply(struct request *request, const struct stored_file *file)
{
    struct representation *reply = &request->reply;

    request->file = file;
    request->is_file_unwritten = stored_file_is_unwritten;
    reply->last_modified = stored_modified(file->identity.modified_ns);
    reply->media_type = "application/octet-stream";
    reply->cache_control = "no-cache";
    reply->ranges = true;
    reply->has_sha256 = file->has_sha256;
    memcpy(reply->sha256, file->sha256, sizeof(reply->sha256));
    representation_source(reply, file->source, 0, zt_source_size(file->source));
}
