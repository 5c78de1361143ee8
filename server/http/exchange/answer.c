/* Turns a representation into an answer. It fills a representation with fields, segments and steps,
 * chooses which of its bytes are sent, and writes the fields of each status (RFC 9110 sections 8,
 * 13 and 14, RFC 9530). Handlers guarantee that they stay within a representation's bounds; no
 * input affects them.
 *
 * The cost of ranges is bounded. At most 64 are honoured, after ranges that touch were merged. Each
 * costs two searches among the segments, a head, and a list of the segments that it touches. */
#include "http/exchange/answer.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/decimal.h"
#include "base/server.h"
#include "catalog/generation.h"
#include "http/exchange/cors.h"
#include "http/exchange/multipart.h"
#include "http/exchange/problem.h"
#include "http/exchange/representation.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/exchange/s3api_fields.h"
#include "http/exchange/timing.h"
#include "http/fields/conditional.h"
#include "http/fields/digest_fields.h"
#include "http/fields/ranges.h"
#include "input/date.h"
#include "tree/stored_file.h"

/* --- the representation --- */

void representation_init(struct representation *representation)
{
    memset(representation, 0, sizeof(*representation));
    representation->status = 200;
    representation->segments = representation->own_segments;
}

void representation_field(struct representation *representation, const char *name,
                          const char *value)
{
    assert(name[0] != '\0');
    assert(representation->field_count < REPRESENTATION_FIELDS);
    /* If there was no memory for the value, the field is omitted. */
    if (value == NULL)
        return;
    representation->fields[representation->field_count++] = (struct field){name, value};
}

static void add_segment(struct representation *representation, struct segment segment)
{
    /* Segments are never empty. */
    if (segment.length == 0)
        return;
    assert(representation->segments == representation->own_segments);
    assert(representation->segment_count < REPRESENTATION_SEGMENTS);
    segment.start = representation->length;
    representation->segments[representation->segment_count++] = segment;
    representation->length += segment.length;
}

void representation_memory(struct representation *representation, const void *bytes,
                           uint64_t length)
{
    add_segment(representation,
                (struct segment){.kind = SEGMENT_MEMORY, .length = length, .bytes = bytes});
}

void representation_source(struct representation *representation, struct zt_source *source,
                           uint64_t offset, uint64_t length)
{
    add_segment(representation,
                (struct segment){
                    .kind = SEGMENT_SOURCE, .length = length, .source = source, .offset = offset});
}

void representation_clear(struct representation *representation)
{
    representation->segments = representation->own_segments;
    representation->segment_count = 0;
    representation->length = 0;
}

void representation_segments(struct representation *representation, struct segment *segments,
                             size_t count)
{
    representation_clear(representation);
    representation->segments = segments;
    representation->segment_count = count;
    for (size_t i = 0; i < count; i++) {
        assert(segments[i].length > 0);
        segments[i].start = representation->length;
        representation->length += segments[i].length;
    }
}

/* Returns the index of the segment that contains the byte at position. */
static size_t find_segment(const struct representation *representation, uint64_t position)
{
    size_t low = 0;
    size_t high = representation->segment_count;

    assert(position < representation->length);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (representation->segments[middle].start <= position)
            low = middle;
        else
            high = middle;
    }
    assert(position - representation->segments[low].start < representation->segments[low].length);
    return low;
}

size_t representation_count(const struct representation *representation, uint64_t first,
                            uint64_t length)
{
    assert(first < representation->length && length > 0);
    assert(length <= representation->length - first);
    return find_segment(representation, first + length - 1) - find_segment(representation, first) +
           1;
}

static void skip_bytes(struct segment *segment, uint64_t length)
{
    assert(length < segment->length);
    segment->length -= length;
    if (segment->kind == SEGMENT_MEMORY)
        segment->bytes += length;
    else
        segment->offset += length;
}

size_t representation_cut(const struct representation *representation, uint64_t first,
                          uint64_t length, uint64_t start, struct segment *out_segments)
{
    const size_t index = find_segment(representation, first);
    size_t count = 0;

    assert(length > 0 && length <= representation->length - first);
    for (uint64_t left = length; left > 0; count++) {
        struct segment *segment = &out_segments[count];

        assert(index + count < representation->segment_count);
        *segment = representation->segments[index + count];
        if (count == 0)
            skip_bytes(segment, first - segment->start);
        if (segment->length > left)
            segment->length = left;
        segment->start = start;
        start += segment->length;
        left -= segment->length;
    }
    return count;
}

void representation_step(struct representation *representation, const char *name, preparation step)
{
    assert(step != NULL);
    assert(representation->step_count < REPRESENTATION_STEPS);
    representation->steps[representation->step_count].name = name;
    representation->steps[representation->step_count].run = step;
    representation->step_count++;
}

/* --- the bytes that are sent --- */

/* --- bytes --- */

static void reply_unsatisfiable(struct request *request)
{
    const unsigned long long length = request->reply.length;

    problem_reply(request, PROBLEM_RANGE_NOT_SATISFIABLE, "the representation has %llu bytes",
                  length);
    representation_field(&request->reply, "Content-Range",
                         request_print(request, "bytes */%llu", length));
}

static bool take_range(struct request *request, struct byte_range range)
{
    struct request_state *state = request_state(request);
    const struct representation *reply = &request->reply;
    const size_t count = representation_count(reply, range.first, range.length);
    struct segment *segments = state->answer_segments;

    assert(range.length > 0 && range.first + range.length <= reply->length);
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

static bool take_parts(struct request *request, const struct range_set *set)
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
    const bool taken =
        set->count == 1 ? take_range(request, set->ranges[0]) : take_parts(request, set);

    assert(!request_state(request)->ranged);
    assert(set->count > 0);
    if (taken)
        request_state(request)->ranged = true;
    else
        problem_reply_no_memory(request);
}

/* Shorter ranges are those of readers that look at parts of a file, and do not join them. */
#define JOINED_RANGE_BYTES ((uint64_t)1 << 20)

/* Returns true if bytes that were sent of a file turned out to be wrong lately. continues: the
 * client asks for all that it has not got; then it may also have bytes of an earlier process. */
static bool was_wrong(struct store *store, const char *path, const struct file_identity *identity,
                      bool continues)
{
    const struct store_revision_ops *ops = store->revisions;

    return ops->was_wrong(store, path, identity) ||
           (continues && ops->may_be_wrong != NULL && ops->may_be_wrong(store, path, identity));
}

/* Does the same for the answer's file. */
static bool answer_was_wrong(const struct request *request, bool continues)
{
    const struct stored_file *file = request->file;
    const struct generation *generation = request->generation;
    struct store *store = request->server->store;

    if (store == NULL || store->revisions == NULL)
        return false;
    return (file != NULL && was_wrong(store, file->path, &file->identity, continues)) ||
           (generation != NULL &&
            was_wrong(store, generation->own_path, &generation->identity, continues));
}

/* Returns true if a client may be about to join this range with bytes that it got before, and these
 * may have been wrong: it gets the whole file, and begins again (section 14.2). */
static bool must_begin_again(const struct request *request, const char *field,
                             const struct range_set *set)
{
    const struct byte_range *range = &set->ranges[set->count - 1];
    const uint64_t length = request->reply.length;
    const bool continues = field[strlen(field) - 1] == '-' && range->first > 0;
    bool is_joined = continues;

    assert(set->count > 0 && field[0] != '\0');
    for (unsigned i = 0; i < set->count; i++)
        if (set->ranges[i].length >= JOINED_RANGE_BYTES && set->ranges[i].length < length)
            is_joined = true;
    return is_joined && answer_was_wrong(request, continues);
}

/* Ranges apply to GET and to other requests that read, after the preconditions (section 14.2). */
void answer_choose_ranges(struct request *request)
{
    const struct representation *reply = &request->reply;
    const char *field = request_header(request, "Range");
    struct range_set set;

    if (field == NULL || !request_is_read(request) || request->method == METHOD_HEAD ||
        reply->status != 200 || !reply->ranges ||
        !if_range_holds(request_header(request, "If-Range"), reply->etag, reply->last_modified,
                        time(NULL)))
        return;
    switch (ranges_parse(field, reply->length, &set)) {
    case RANGES_ABSENT:
        break;
    case RANGES_UNSATISFIABLE:
        reply_unsatisfiable(request);
        break;
    case RANGES_SATISFIABLE:
        /* S3 has no answers of several parts, and sends the whole object. */
        if ((set.count == 1 || !request_is_s3(request)) && !must_begin_again(request, field, &set))
            send_ranges(request, &set);
        break;
    }
}

/* The Content-Length of a 304 must equal that of the 200, or be absent (section 8.6). The steps
 * have not run in this case. */
static uint64_t length_of_unsent(const struct representation *reply)
{
    assert(reply->status == 200);
    if (reply->segment_count > 0 || reply->step_count == 0)
        return reply->length;
    return reply->expected_length > 0 ? reply->expected_length : ANSWER_LENGTH_UNKNOWN;
}

void answer_take_segments(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;

    assert(!state->not_modified || request->reply.status == 200);
    state->ranged = state->ranged && request->reply.status == 200;
    if (!state->ranged) {
        state->parts_type = NULL;
        answer->segments = request->reply.segments;
        answer->segment_count = request->reply.segment_count;
        answer->content_length = request->reply.length;
    }
    if (state->not_modified)
        answer->content_length = length_of_unsent(&request->reply);
    if (request->method == METHOD_HEAD && request->reply.hides_length)
        answer->content_length = ANSWER_LENGTH_UNKNOWN;
    if (request->method == METHOD_HEAD || state->not_modified)
        answer->segment_count = 0;
}

/* --- fields --- */

struct field_list {
    struct field *fields;
    unsigned count;
};

static void add(struct field_list *list, const char *name, const char *value)
{
    /* The HTTP library rejects fields without a value. */
    if (value == NULL || value[0] == '\0')
        return;
    assert(list->count < ANSWER_FIELDS);
    list->fields[list->count++] = (struct field){name, value};
}

static const char *date_text(struct request *request, time_t time)
{
    char *text = request_allocate(request, HTTP_DATE_SIZE);

    if (text != NULL)
        http_date_format(time, text);
    return text;
}

static const char *digest_text(struct request *request, const uint8_t sha256[32])
{
    char *text = request_allocate(request, DIGEST_FIELD_SIZE);

    if (text != NULL)
        digest_field_format(sha256, text);
    return text;
}

/* Returns true if caches may store the answer. */
static bool is_cacheable(const struct representation *reply)
{
    return reply->cache_control != NULL && strcmp(reply->cache_control, "no-store") != 0;
}

/* An answer to an authenticated client is private: shared caches must not store it (RFC 9111
 * section 5.2.2.7). */
static const char *cache_control_text(struct request *request)
{
    static const char public[] = "public, ";
    const struct representation *reply = &request->reply;
    const char *text = reply->cache_control;

    if (text == NULL)
        return reply->status >= 400 ? "no-store" : NULL;
    if (request->grant == NULL || !is_cacheable(reply))
        return text;
    if (strncmp(text, public, sizeof(public) - 1) == 0)
        text += sizeof(public) - 1;
    return request_print(request, "private, %s", text);
}

/* Authorization makes sure that a client's own cache does not reuse one token's answer for
 * another. */
static const char *vary_text(struct request *request)
{
    const struct representation *reply = &request->reply;

    if (request->grant == NULL || !is_cacheable(reply))
        return reply->vary;
    return reply->vary == NULL ? "Authorization"
                               : request_print(request, "%s, Authorization", reply->vary);
}

/* Adds the fields that a 304 has as well (RFC 9110 section 15.4.5). */
static void add_validators(struct request *request, struct field_list *list)
{
    const struct representation *reply = &request->reply;
    const char *vary = vary_text(request);

    add(list, "ETag", reply->etag);
    if (reply->last_modified != 0)
        add(list, "Last-Modified", date_text(request, reply->last_modified));
    add(list, "Cache-Control", cache_control_text(request));
    add(list, "Vary", request->access->pages.allows_pages ? cors_vary(request, vary) : vary);
}

static const char *content_range_text(struct request *request)
{
    static const char unit[] = "bytes ";
    const struct byte_range *range = &request_state(request)->range;
    char text[sizeof(unit) + 3 * (ZT_DECIMAL_SIZE + 1)];
    char *at = text + sizeof(unit) - 1;

    assert(range->length > 0 && range->first + range->length <= request->reply.length);
    memcpy(text, unit, sizeof(unit) - 1);
    at = zt_decimal_write(at, range->first);
    *at++ = '-';
    at = zt_decimal_write(at, range->first + range->length - 1);
    *at++ = '/';
    at = zt_decimal_write(at, request->reply.length);
    return request_copy(request, text, (size_t)(at - text));
}

/* If there are several parts, these fields are in their heads: the body around them has another
 * type and is not encoded. */
static void add_type(struct request *request, struct field_list *list)
{
    const struct request_state *state = request_state(request);
    const struct representation *reply = &request->reply;

    if (state->ranged && state->parts_type != NULL) {
        add(list, "Content-Type", state->parts_type);
        return;
    }
    add(list, "Content-Type", reply->media_type);
    add(list, "Content-Encoding", reply->coding);
    if (state->ranged)
        add(list, "Content-Range", content_range_text(request));
}

static void add_checksum(struct request *request, struct field_list *list)
{
    bool is_whole;
    const char *checksum = s3api_checksum(request, &is_whole);

    add(list, "x-amz-checksum-sha256", checksum);
    if (checksum != NULL && is_whole)
        add(list, "x-amz-checksum-type", "FULL_OBJECT");
}

bool answer_is_unverified(const struct request *request)
{
    if (request->reply.status >= 400)
        return false;
    return (request->file != NULL && store_is_unverified(request->file->store, request->file->path,
                                                         &request->file->identity)) ||
           (request->generation != NULL && generation_is_unverified(request->generation));
}

/* Adds the fields that describe the bytes. */
static void add_content(struct request *request, struct field_list *list)
{
    const struct request_state *state = request_state(request);
    const struct representation *reply = &request->reply;

    add_type(request, list);
    if (reply->ranges)
        add(list, "Accept-Ranges", "bytes");
    /* The digest covers the whole representation, even if only a part is sent. */
    if (reply->has_sha256)
        add(list, "Repr-Digest", digest_text(request, reply->sha256));
    if (state->has_content_sha256 && reply->status == 200)
        add(list, "Content-Digest", digest_text(request, state->content_sha256));
    if (answer_is_unverified(request))
        add(list, "ZT-Verified", "no");
    if (request_is_s3(request))
        add_checksum(request, list);
    for (unsigned i = 0; i < reply->field_count; i++)
        add(list, reply->fields[i].name, reply->fields[i].value);
    for (unsigned i = 0; i < reply->more_count; i++)
        add(list, reply->more_fields[i].name, reply->more_fields[i].value);
}

unsigned answer_write_fields(struct request *request, struct field *out_fields)
{
    struct field_list list = {out_fields, 0};

    if (!request_state(request)->not_modified)
        add_content(request, &list);
    add_validators(request, &list);
    /* Ordinary answers are equal for all clients, so that caches can share them. */
    if (request_state(request)->has_own_id || request->reply.status >= 400)
        add(&list, "X-Request-Id", request->id);
    if (request_state(request)->timing != NULL)
        add(&list, "Server-Timing", timing_text(request));
    if (request->route != NULL)
        add(&list, request->route->field.name, request->route->field.value);
    if (request_is_s3(request))
        add(&list, "x-amz-request-id", request->id);
    add(&list, "ZT-Commit", request->commit);
    assert(list.count + CORS_FIELDS <= ANSWER_FIELDS);
    if (!request->access->pages.allows_pages)
        return list.count;
    return list.count + cors_fields(request, out_fields + list.count);
}
