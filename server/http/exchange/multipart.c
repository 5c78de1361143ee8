/* The body of a multipart/byteranges answer (RFC 9110 section 14.6, RFC 2046 section 5.1.1).
 *
 * Each answer has a random boundary of 128 bits, so that it cannot be planted in a file or occur by
 * chance. */
#include "http/exchange/multipart.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"

#define BOUNDARY_BYTES 16
#define BOUNDARY_SIZE  (2 * BOUNDARY_BYTES + 1)

static bool draw_boundary(char out_boundary[BOUNDARY_SIZE])
{
    uint8_t bytes[BOUNDARY_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return false;
    zt_hex_write(out_boundary, bytes, sizeof(bytes));
    return true;
}

static const char *print_head(struct request *request, const char *boundary,
                              struct byte_range range, bool is_first)
{
    const struct representation *reply = &request->reply;

    return request_print(
        request,
        "%s--%s\r\n%s%s%s%s%s%sContent-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n\r\n",
        is_first ? "" : "\r\n", boundary, reply->media_type != NULL ? "Content-Type: " : "",
        reply->media_type != NULL ? reply->media_type : "", reply->media_type != NULL ? "\r\n" : "",
        reply->coding != NULL ? "Content-Encoding: " : "",
        reply->coding != NULL ? reply->coding : "", reply->coding != NULL ? "\r\n" : "",
        range.first, range.first + range.length - 1, reply->length);
}

static bool add_text(struct multipart *multipart, const char *text)
{
    if (text == NULL)
        return false;
    multipart->segments[multipart->segment_count++] = (struct segment){
        .kind = SEGMENT_MEMORY,
        .start = multipart->length,
        .length = strlen(text),
        .bytes = (const uint8_t *)text,
    };
    multipart->length += strlen(text);
    return true;
}

static bool add_parts(struct request *request, const struct range_set *set, const char *boundary,
                      struct multipart *multipart)
{
    for (unsigned i = 0; i < set->count; i++) {
        const struct byte_range range = set->ranges[i];

        if (!add_text(multipart, print_head(request, boundary, range, i == 0)))
            return false;
        multipart->segment_count +=
            representation_cut(&request->reply, range.first, range.length, multipart->length,
                               multipart->segments + multipart->segment_count);
        multipart->length += range.length;
    }
    return add_text(multipart, request_print(request, "\r\n--%s--\r\n", boundary));
}

/* Counts the segments, including a head for each part, and the end. */
static size_t count_segments(const struct representation *reply, const struct range_set *set)
{
    size_t count = (size_t)set->count + 1;

    for (unsigned i = 0; i < set->count; i++)
        count += representation_count(reply, set->ranges[i].first, set->ranges[i].length);
    return count;
}

bool multipart_make(struct request *request, const struct range_set *set,
                    struct multipart *out_multipart)
{
    const size_t count = count_segments(&request->reply, set);
    struct multipart multipart = {.segments =
                                      request_allocate(request, count * sizeof(struct segment))};
    char boundary[BOUNDARY_SIZE];

    if (multipart.segments == NULL || !draw_boundary(boundary))
        return false;
    multipart.media_type = request_print(request, "multipart/byteranges; boundary=%s", boundary);
    if (multipart.media_type == NULL || !add_parts(request, set, boundary, &multipart))
        return false;
    assert(multipart.segment_count == count);
    *out_multipart = multipart;
    return true;
}
