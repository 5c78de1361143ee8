/* A checksum of the whole object on a part would make clients refuse the part. */
#include "http/exchange/s3api_fields.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "http/exchange/request_state.h"

/* Twice the part size of AWS's clients. Hashing it takes about 10 ms. */
#define HASHED_MAX ((uint64_t)16 << 20)

const char *s3api_tags(struct request *request, const char *name)
{
    return s3api_quoted(request, request_header(request, name));
}

const char *s3api_quoted(struct request *request, const char *value)
{
    if (value == NULL || strchr(value, '"') != NULL || strcmp(value, "*") == 0)
        return value;
    return request_print(request, "\"%s\"", value);
}

static bool is_one_part(const struct request_state *state)
{
    return state->ranged && state->parts_type == NULL;
}

bool s3api_wants_checksum(struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const char *mode = request_header(request, "x-amz-checksum-mode");

    assert(!state->ranged || state->parts_type != NULL || state->range.length > 0);
    return is_one_part(state) && state->range.length <= HASHED_MAX && mode != NULL &&
           strcasecmp(mode, "ENABLED") == 0;
}

const char *s3api_checksum_key(struct request *request)
{
    const struct request_state *state = request_state_const(request);

    if (!request_is_s3(request) || !is_one_part(state) || request->reply.etag == NULL)
        return NULL;
    return request_print(request, "%s:%llu+%llu", request->reply.etag,
                         (unsigned long long)state->range.first,
                         (unsigned long long)state->range.length);
}

const char *s3api_checksum(struct request *request, bool *out_is_whole)
{
    const struct request_state *state = request_state_const(request);
    const struct representation *reply = &request->reply;
    const bool covers_all = !state->ranged || state->range.length == reply->length;
    const uint8_t *sha256 = covers_all && reply->has_sha256 ? reply->sha256
                            : state->has_content_sha256     ? state->content_sha256
                                                            : NULL;
    char *text;

    assert(!state->ranged || state->parts_type != NULL || state->range.length <= reply->length);
    *out_is_whole = !state->ranged;
    if (sha256 == NULL || reply->status != 200 || state->parts_type != NULL)
        return NULL;
    text = request_allocate(request, ZT_BASE64_SIZE(sizeof(reply->sha256)));
    if (text != NULL)
        zt_base64_write(text, sha256, sizeof(reply->sha256), ZT_BASE64);
    return text;
}
