/* Keys are split from the path before they are decoded, because some clients escape slashes. */
#include "s3/s3api_request.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/server.h"
#include "config/config.h"
#include "http/exchange/s3api_error.h"
#include "http/fields/uri.h"
#include "store/store.h"
#include "zt/utf8.h"

bool s3api_decode(struct request *request, struct zt_text raw, struct zt_text *out_name)
{
    char *text = request_allocate(request, raw.length + 1);
    size_t length = 0;
    bool is_text;

    *out_name = (struct zt_text){NULL, 0};
    if (text == NULL)
        return false;
    is_text = percent_decode(raw, text, &length) && memchr(text, '\0', length) == NULL &&
              zt_utf8_valid(text, length);
    text[length] = '\0';
    *out_name = (struct zt_text){text, length};
    return is_text;
}

bool s3api_finds_bucket(struct request *request)
{
    const struct zt_text raw = request->names[0];
    struct zt_text name;

    if (raw.length == 0)
        return true;
    if (s3api_decode(request, raw, &name) && zt_text_is(name, request->server->config->s3.bucket))
        return true;
    if (name.bytes == NULL)
        problem_reply_no_memory(request);
    else
        s3api_problem(request, S3API_NO_SUCH_BUCKET, "the only bucket is %.64s",
                      request->server->config->s3.bucket);
    return false;
}

/* Removes a slash at the end of an encoded key. */
static bool take_slash(struct zt_text *raw)
{
    const size_t length = raw->length;

    if (length > 0 && raw->bytes[length - 1] == '/')
        raw->length -= 1;
    else if (length > 2 && strncasecmp(raw->bytes + length - 3, "%2F", 3) == 0)
        raw->length -= 3;
    return raw->length < length;
}

/* out_is_folder: NULL if a key must not end with a slash. */
static bool find_key(struct request *request, struct zt_text *out_key, bool *out_is_folder)
{
    const bool is_read = request->method == METHOD_GET || request->method == METHOD_HEAD;
    struct zt_text raw = request->names[1];
    struct zt_text key;

    assert(request->names[1].length > 0);
    if (!s3api_finds_bucket(request))
        return false;
    if (out_is_folder != NULL)
        *out_is_folder = take_slash(&raw);
    if (s3api_decode(request, raw, &key) && store_path_is_served(key)) {
        *out_key = key;
        return true;
    }
    if (key.bytes == NULL)
        problem_reply_no_memory(request);
    else if (is_read)
        s3api_problem(request, S3API_NO_SUCH_KEY, "no object has this key");
    else
        s3api_problem(
            request, S3API_INVALID_ARGUMENT,
            "a key must be the path of a file: UTF-8 without control characters, in parts "
            "of at most 255 bytes that do not begin with a dot");
    return false;
}

bool s3api_find_key(struct request *request, struct zt_text *out_key)
{
    return find_key(request, out_key, NULL);
}

bool s3api_find_key_or_folder(struct request *request, struct zt_text *out_key, bool *out_is_folder)
{
    return find_key(request, out_key, out_is_folder);
}

bool s3api_finds_version(struct request *request)
{
    struct zt_text raw;

    if (!query_find(request_target(request), "versionId", 0, &raw) || raw.length == 0 ||
        zt_text_is(raw, "null"))
        return true;
    s3api_problem(request, S3API_NO_SUCH_VERSION, "the bucket has no versions");
    return false;
}
