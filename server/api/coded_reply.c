/* Choosing the coding of a JSON answer, and compressing it in its place. */
#include "api/coded_reply.h"

#include <stdlib.h>
#include <string.h>

#include "http/exchange/problem.h"
#include "zt/coding.h"

/* Shorter texts fit in the packet that the header needs anyhow. */
#define WORTH_CODING_BYTES 1024
/* Longer ones take longer than about 10 ms to compress. */
#define LONG_TEXT_BYTES 262144

bool coded_reply_choose(struct request *request, struct coded_reply *reply)
{
    static const enum coding offered[] = {CODING_ZSTD, CODING_GZIP, CODING_IDENTITY};
    static const enum coding plain[] = {CODING_IDENTITY};
    const char *field = request_header(request, "Accept-Encoding");

    reply->coding = negotiate_coding(field, offered, sizeof(offered) / sizeof(offered[0]));
    reply->identity_taken = negotiate_coding(field, plain, 1) == CODING_IDENTITY;
    if (reply->coding == CODING_NONE) {
        problem_reply(request, PROBLEM_NOT_ACCEPTABLE,
                      "the answer is there as it is, and coded as zstd or gzip");
    }
    request->reply.vary = "Accept-Encoding";
    return reply->coding != CODING_NONE;
}

/* On a worker. The compressed text takes the place of the JSON. */
static void compress(struct request *request)
{
    struct json *json = ((struct coded_reply *)request->context)->json;
    enum coding chosen = ((struct coded_reply *)request->context)->coding;
    enum zt_coding coding = chosen == CODING_ZSTD ? ZT_CODING_ZSTD : ZT_CODING_GZIP;
    uint8_t *bytes;
    size_t length;

    if (zt_coding_encode(coding, json->text, json->length, &bytes, &length, NULL) != ZT_OK) {
        json->failed = true;
        return;
    }
    free(json->text);
    json->text = (char *)bytes;
    json->length = json->capacity = length;
}

enum outcome coded_reply_code(struct request *request, struct coded_reply *reply)
{
    const struct json *json = reply->json;

    if (!reply->coded) {
        reply->coded = true;
        if (reply->identity_taken && json->length < WORTH_CODING_BYTES)
            reply->coding = CODING_IDENTITY;
        if (reply->coding != CODING_IDENTITY && !json->failed) {
            return json->length > LONG_TEXT_BYTES ? request_work_long(request, compress)
                                                  : request_work(request, compress);
        }
    }
    request->reply.coding = coding_name(reply->coding);
    return OUTCOME_READY;
}

const char *coded_reply_etag(struct request *request, const struct coded_reply *reply,
                             const char *etag)
{
    const char *name = coding_name(reply->coding);

    return name == NULL ? etag
                        : request_print(request, "%.*s-%s\"", (int)strlen(etag) - 1, etag, name);
}
