/* Reading shard=R/N and axis=A. Numbers that are too large are as good as the largest: no tensor
 * has so many. */
#include "api/shard_query.h"

#include "http/exchange/problem.h"

static bool take_number(struct zt_text *text, uint64_t *out_number)
{
    uint64_t number = 0;
    size_t at = 0;

    for (; at < text->length && text->bytes[at] >= '0' && text->bytes[at] <= '9'; at++) {
        uint64_t digit = (uint64_t)(text->bytes[at] - '0');

        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    *text = (struct zt_text){text->bytes + at, text->length - at};
    *out_number = number;
    return at > 0;
}

static bool take_byte(struct zt_text *text, char byte)
{
    if (text->length == 0 || text->bytes[0] != byte)
        return false;
    *text = (struct zt_text){text->bytes + 1, text->length - 1};
    return true;
}

static bool read_shard(struct zt_text text, struct zt_cut *cut)
{
    return take_number(&text, &cut->part) && take_byte(&text, '/') &&
           take_number(&text, &cut->parts) && text.length == 0 && cut->part < cut->parts;
}

static bool read_axis(struct zt_text text, int64_t *out_axis)
{
    bool negative = take_byte(&text, '-');
    uint64_t number;
    int64_t axis;

    if (!take_number(&text, &number) || text.length > 0)
        return false;
    axis = number < INT64_MAX ? (int64_t)number : INT64_MAX;
    *out_axis = negative ? -axis : axis;
    return true;
}

/* NULL, or what is wrong. */
static const char *read_parameters(struct request *request, struct zt_cut *cut)
{
    struct zt_text shard;
    struct zt_text axis;
    struct zt_text again;
    bool has_shard = request_query(request, "shard", 0, &shard);
    bool has_axis = request_query(request, "axis", 0, &axis);

    if (request_query(request, "shard", 1, &again) || request_query(request, "axis", 1, &again))
        return "shard and axis are given once";
    if (has_axis && !has_shard)
        return "axis goes with shard";
    if (has_shard && !read_shard(shard, cut))
        return "shard is R/N: the R-th, from 0, of N parts";
    return has_axis && !read_axis(axis, &cut->axis) ? "axis is an integer" : NULL;
}

bool shard_query_read(struct request *request, struct zt_cut *out_cut)
{
    struct zt_cut cut = {0, 0, 0};
    const char *wrong = read_parameters(request, &cut);

    if (wrong != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", wrong);
        return false;
    }
    *out_cut = cut;
    return true;
}
