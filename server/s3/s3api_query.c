/* Parameters are found in the raw target, since only here '+' is a blank. */
#include "s3/s3api_query.h"

#include <assert.h>

#include "base/decimal.h"
#include "http/exchange/problem.h"
#include "http/exchange/s3api_error.h"
#include "http/fields/uri.h"
#include "s3/s3api_listing.h"

bool s3api_query_text(struct request *request, const char *name, bool *out_is_there,
                      struct zt_text *out_text)
{
    struct zt_text raw;
    char *text;

    *out_text = (struct zt_text){"", 0};
    *out_is_there = query_find(request_target(request), name, 0, &raw);
    if (!*out_is_there || raw.length == 0)
        return true;
    text = request_copy(request, raw.bytes, raw.length);
    if (text == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    for (size_t i = 0; i < raw.length; i++)
        if (text[i] == '+')
            text[i] = ' ';
    out_text->bytes = text;
    if (percent_decode((struct zt_text){text, raw.length}, text, &out_text->length))
        return true;
    s3api_problem(request, S3API_INVALID_ARGUMENT, "%s has a malformed percent-escape", name);
    return false;
}

bool s3api_query_number(struct request *request, const char *name, uint64_t least, uint64_t most,
                        uint64_t *number)
{
    struct zt_text value;

    if (!request_query(request, name, 0, &value) || value.length == 0)
        return true;
    if (zt_decimal_read(value, most, number) && *number >= least)
        return true;
    s3api_problem(request, S3API_INVALID_ARGUMENT, "%s must be a number from %llu to %llu", name,
                  (unsigned long long)least, (unsigned long long)most);
    return false;
}

bool s3api_query_limit(struct request *request, const char *name, size_t *out_limit)
{
    uint64_t limit = S3API_PAGE_MAX;

    if (!s3api_query_number(request, name, 0, INT32_MAX, &limit))
        return false;
    *out_limit = limit < S3API_PAGE_MAX ? (size_t)limit : S3API_PAGE_MAX;
    assert(*out_limit <= S3API_PAGE_MAX);
    return true;
}

bool s3api_query_encoding(struct request *request, bool *out_is_url)
{
    struct zt_text text;
    bool is_there;

    if (!s3api_query_text(request, "encoding-type", &is_there, &text))
        return false;
    *out_is_url = zt_text_is(text, "url");
    if (text.length == 0 || *out_is_url)
        return true;
    s3api_problem(request, S3API_INVALID_ARGUMENT, "encoding-type must be url");
    return false;
}
