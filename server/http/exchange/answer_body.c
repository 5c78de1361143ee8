/* Range and If-Range turned into segments. What it costs is bounded by the 64 ranges that are
 * honoured: two searches among the representation's segments and one head each, and a list of the
 * segments that they touch, which lie apart since ranges that meet were merged. */
#include "http/exchange/answer_body.h"

#include <time.h>

#include "http/exchange/multipart.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/fields/conditional.h"
#include "http/fields/ranges.h"

static void refuse_range(struct request *request)
{
    const unsigned long long length = request->reply.length;

    problem_reply(request, PROBLEM_RANGE_NOT_SATISFIABLE, "the representation has %llu bytes",
                  length);
    representation_field(&request->reply, "Content-Range",
                         request_print(request, "bytes */%llu", length));
}

/* In memory of the request's own where they are more than usual. */
static bool cut_range(struct request *request, struct byte_range range)
{
    struct request_state *state = request_state(request);
    const struct representation *reply = &request->reply;
    const size_t count = representation_count(reply, range.first, range.length);
    struct segment *segments = state->answer_segments;

    if (count > REPRESENTATION_SEGMENTS)
        segments = request_allocate(request, count * sizeof(*segments));
    if (segments == NULL)
        return false;
    representation_cut(reply, range.first, range.length, 0, segments);
    state->range = range;
    state->answer.segments = segments;
    state->answer.segment_count = count;
    state->answer.content_length = range.length;
    return true;
}

static bool make_parts(struct request *request, const struct range_set *set)
{
    struct request_state *state = request_state(request);
    struct multipart multipart;

    if (!multipart_make(request, set, &multipart))
        return false;
    state->parts_type = multipart.media_type;
    state->answer.segments = multipart.segments;
    state->answer.segment_count = multipart.segment_count;
    state->answer.content_length = multipart.length;
    return true;
}

static void send_ranges(struct request *request, const struct range_set *set)
{
    const bool made =
        set->count == 1 ? cut_range(request, set->ranges[0]) : make_parts(request, set);

    if (made)
        request_state(request)->ranged = true;
    else
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
}

/* Section 14.2: for GET alone, and after the preconditions. */
void answer_body_choose(struct request *request)
{
    const struct representation *reply = &request->reply;
    const char *field = request_header(request, "Range");
    struct range_set set;

    if (field == NULL || request->method != METHOD_GET || reply->status != 200 || !reply->ranges ||
        !if_range_holds(request_header(request, "If-Range"), reply->etag, reply->last_modified,
                        time(NULL)))
        return;
    switch (ranges_parse(field, reply->length, &set)) {
    case RANGES_ABSENT:
        break;
    case RANGES_UNSATISFIABLE:
        refuse_range(request);
        break;
    case RANGES_SATISFIABLE:
        send_ranges(request, &set);
        break;
    }
}

/* Content-Length of a 304 is what the 200 would have, or absent (section 8.6); the steps were not
 * run. */
static uint64_t length_of_unsent(const struct representation *reply)
{
    if (reply->segment_count > 0 || reply->step_count == 0)
        return reply->length;
    return reply->length_foretold > 0 ? reply->length_foretold : ANSWER_LENGTH_UNKNOWN;
}

void answer_body_settle(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;

    state->ranged = state->ranged && request->reply.status == 200;
    if (!state->ranged) {
        state->parts_type = NULL;
        answer->segments = request->reply.segments;
        answer->segment_count = request->reply.segment_count;
        answer->content_length = request->reply.length;
    }
    if (state->not_modified)
        answer->content_length = length_of_unsent(&request->reply);
    if (request->method == METHOD_HEAD || state->not_modified)
        answer->segment_count = 0;
}
