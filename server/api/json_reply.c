/* Writes, compresses and sends JSON responses. */
#include "api/json_reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "zt/coding.h"

/* Shorter texts fit into the packet that carries the header. */
#define WORTH_CODING_BYTES 1024
/* Longer texts take more than about 10 ms to compress. */
#define LONG_TEXT_BYTES 262144

static void release_json(void *json)
{
    json_free(json);
}

struct json *json_reply_new(struct request *request, bool pretty)
{
    struct json *json = request_new_memory(request, sizeof(*json));

    if (json == NULL)
        return NULL;
    json_init(json, pretty);
    request_hold(request, json, release_json);
    return json;
}

enum outcome json_reply_too_long(struct request *request)
{
    return problem_reply(request, PROBLEM_NOT_REPRESENTABLE,
                         "the manifest is many times longer as JSON than in the file; select "
                         "objects with match or prefix");
}

enum outcome json_reply_send(struct request *request, struct json *json)
{
    if (json->too_long)
        return json_reply_too_long(request);
    if (json->failed)
        return problem_reply(request, PROBLEM_INTERNAL, "the response does not fit in memory");
    assert(json->text != NULL);
    request->reply.status = 200;
    request->reply.media_type = "application/json";
    representation_memory(&request->reply, json->text, json->length);
    return OUTCOME_READY;
}

enum outcome json_reply_send_now(struct request *request, struct json *json, unsigned status)
{
    json_reply_send(request, json);
    if (!request->replied) {
        request->reply.status = status;
        request->reply.cache_control = "no-store";
    }
    return OUTCOME_READY;
}

/* --- coding --- */

bool json_reply_negotiate(struct request *request, struct json_reply *reply)
{
    static const enum coding offered[] = {CODING_ZSTD, CODING_GZIP, CODING_IDENTITY};
    static const enum coding plain[] = {CODING_IDENTITY};
    const char *field = request_header(request, "Accept-Encoding");

    reply->coding = negotiate_coding(field, offered, sizeof(offered) / sizeof(offered[0]));
    reply->accepts_identity = negotiate_coding(field, plain, 1) == CODING_IDENTITY;
    if (reply->coding == CODING_NONE) {
        problem_reply(request, PROBLEM_NOT_ACCEPTABLE,
                      "the response is available unencoded, or as zstd or gzip");
    }
    request->reply.vary = "Accept-Encoding";
    return reply->coding != CODING_NONE;
}

/* On a worker. Replaces the JSON by the compressed text. */
static void compress(struct request *request)
{
    const struct json_reply *reply = request->context;
    struct json *json = reply->json;
    enum zt_coding coding = reply->coding == CODING_ZSTD ? ZT_CODING_ZSTD : ZT_CODING_GZIP;
    uint8_t *bytes;
    size_t length;

    assert(reply->coding == CODING_ZSTD || reply->coding == CODING_GZIP);
    if (zt_coding_encode(coding, json->text, json->length, &bytes, &length, NULL) != ZT_OK) {
        json->failed = true;
        return;
    }
    free(json->text);
    json->text = (char *)bytes;
    json->length = json->capacity = length;
}

enum outcome json_reply_encode(struct request *request, struct json_reply *reply)
{
    const struct json *json = reply->json;

    assert(json != NULL);
    if (!reply->encoded) {
        reply->encoded = true;
        if (reply->accepts_identity && json->length < WORTH_CODING_BYTES)
            reply->coding = CODING_IDENTITY;
        if (reply->coding != CODING_IDENTITY && !json->failed) {
            return json->length > LONG_TEXT_BYTES ? request_work_long(request, compress)
                                                  : request_work(request, compress);
        }
    }
    request->reply.coding = coding_name(reply->coding);
    return OUTCOME_READY;
}

const char *json_reply_etag(struct request *request, const struct json_reply *reply,
                            const char *etag)
{
    const char *name = coding_name(reply->coding);

    return name == NULL ? etag
                        : request_print(request, "%.*s-%s\"", (int)strlen(etag) - 1, etag, name);
}
