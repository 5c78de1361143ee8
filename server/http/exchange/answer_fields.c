/* RFC 9110 sections 8, 13 and 14, RFC 9530: which fields go with which status. */
#include "http/exchange/answer_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/fields/conditional.h"
#include "http/fields/digest_fields.h"

struct field_list {
    struct field *fields;
    unsigned count;
};

static void add(struct field_list *list, const char *name, const char *value)
{
    /* The HTTP library has no room for a field without a value. */
    if (value == NULL || value[0] == '\0')
        return;
    assert(list->count < ANSWER_FIELDS);
    list->fields[list->count++] = (struct field){name, value};
}

static const char *date_text(struct request *request, time_t time)
{
    char *text = request_allocate(request, 30);

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

/* Fields that a cache needs of a 304 as well (RFC 9110 section 15.4.5). */
static void add_validators(struct request *request, struct field_list *list)
{
    const struct representation *reply = &request->reply;

    add(list, "ETag", reply->etag);
    if (reply->last_modified != 0)
        add(list, "Last-Modified", date_text(request, reply->last_modified));
    add(list, "Cache-Control",
        reply->cache_control == NULL && reply->status >= 400 ? "no-store" : reply->cache_control);
    add(list, "Vary", reply->vary);
}

/* Of several parts each has these in its own head: what is around them is neither of that type nor
 * encoded. */
static void add_form(struct request *request, struct field_list *list)
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
        add(list, "Content-Range",
            request_print(request, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, state->range.first,
                          state->range.first + state->range.length - 1, reply->length));
}

/* Fields about the bytes that are sent. */
static void add_content(struct request *request, struct field_list *list)
{
    const struct request_state *state = request_state(request);
    const struct representation *reply = &request->reply;

    add_form(request, list);
    if (reply->ranges)
        add(list, "Accept-Ranges", "bytes");
    /* Of the whole representation, whatever part of it is sent. */
    if (reply->has_sha256)
        add(list, "Repr-Digest", digest_text(request, reply->sha256));
    if (state->has_content_sha256 && reply->status == 200)
        add(list, "Content-Digest", digest_text(request, state->content_sha256));
    for (unsigned i = 0; i < reply->field_count; i++)
        add(list, reply->fields[i].name, reply->fields[i].value);
}

unsigned answer_fields_write(struct request *request, struct field *out_fields)
{
    struct field_list list = {out_fields, 0};

    if (!request_state(request)->not_modified)
        add_content(request, &list);
    add_validators(request, &list);
    add(&list, "X-Request-Id", request->id);
    if (request->route != NULL)
        add(&list, request->route->field.name, request->route->field.value);
    return list.count;
}
