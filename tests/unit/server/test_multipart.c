/* multipart/byteranges bodies, read back part by part. */
#include "tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange/multipart.h"
#include "http/exchange/request_state.h"

#define LENGTH 10000

const struct route routes[] = {{.pattern = "/"}};
const size_t route_count = 1;

static struct config config;
static struct server server = {.config = &config};
static uint8_t flat[LENGTH];
static struct zt_source *source;

/* Pieces of prime lengths. */
static struct request *ask(void)
{
    static const unsigned lengths[] = {1, 2, 3, 5, 7, 11, 13, 17, 19, 997};
    struct request *request = request_new(&server, NULL, "/");
    struct segment *segments = request_allocate(request, LENGTH * sizeof(*segments));
    size_t count = 0;

    for (uint64_t at = 0; at < LENGTH; at += segments[count++].length) {
        const uint64_t length =
            lengths[count % 10] < LENGTH - at ? lengths[count % 10] : LENGTH - at;

        segments[count] = (struct segment){.kind = count % 3 == 0 ? SEGMENT_SOURCE : SEGMENT_MEMORY,
                                           .length = length,
                                           .bytes = flat + at,
                                           .source = source,
                                           .offset = at};
    }
    representation_segments(&request->reply, segments, count);
    request->reply.media_type = "application/x-test";
    return request;
}

static char *gather(const struct multipart *multipart)
{
    char *body = malloc(multipart->length + 1);
    uint64_t at = 0;

    assert_non_null(body);
    for (size_t i = 0; i < multipart->segment_count; i++) {
        const struct segment *segment = &multipart->segments[i];

        assert_true(segment->length > 0 && segment->start == at &&
                    at + segment->length <= multipart->length);
        if (segment->kind == SEGMENT_MEMORY)
            memcpy(body + at, segment->bytes, segment->length);
        else
            assert_ok(zt_source_read_at(segment->source, segment->offset, body + at,
                                        segment->length, NULL));
        at += segment->length;
    }
    assert_true(at == multipart->length);
    body[at] = '\0';
    return body;
}

static const char *pass_text(const char *at, const char *text)
{
    assert_int_equal(strncmp(at, text, strlen(text)), 0);
    return at + strlen(text);
}

/* The whole grammar, byte by byte. */
static void check_body(const struct request *request, const struct range_set *set,
                       const struct multipart *multipart)
{
    const char *boundary = pass_text(multipart->media_type, "multipart/byteranges; boundary=");
    char *body = gather(multipart);
    const char *at = body;

    for (unsigned i = 0; i < set->count; i++) {
        const struct byte_range range = set->ranges[i];
        char head[256];

        snprintf(head, sizeof(head),
                 "%s--%s\r\nContent-Type: %s\r\nContent-Range: bytes %" PRIu64 "-%" PRIu64
                 "/%d\r\n\r\n",
                 i > 0 ? "\r\n" : "", boundary, request->reply.media_type, range.first,
                 range.first + range.length - 1, LENGTH);
        at = pass_text(at, head);
        assert_memory_equal(at, flat + range.first, range.length);
        at += range.length;
    }
    at = pass_text(pass_text(pass_text(at, "\r\n--"), boundary), "--\r\n");
    assert_true(at == body + multipart->length);
    free(body);
}

TEST(parts_hold_the_ranges_bytes)
{
    uint64_t seed = 11;

    for (unsigned i = 0; i < 300; i++) {
        struct request *request = ask();
        struct multipart multipart;
        struct range_set set = {.count = 0};

        while (set.count < 2 + i % (RANGES_MAX - 1)) {
            uint64_t first;

            seed = seed * 6364136223846793005u + 1442695040888963407u;
            first = (seed >> 33) % LENGTH;

            set.ranges[set.count++] =
                (struct byte_range){first, 1 + (seed >> 13) % (LENGTH - first)};
        }
        assert_true(multipart_make(request, &set, &multipart));
        check_body(request, &set, &multipart);
        request_free(request);
    }
}

TEST(boundaries_differ)
{
    const struct range_set set = {.ranges = {{0, 1}, {5, 1}}, .count = 2};
    struct request *request = ask();
    struct multipart first;
    struct multipart second;

    assert_true(multipart_make(request, &set, &first));
    assert_true(multipart_make(request, &set, &second));
    assert_string_not_equal(first.media_type, second.media_type);
    assert_true(first.length == second.length);
    request_free(request);
}

TEST(parts_have_the_coding_and_only_a_known_type)
{
    static const char head[] =
        "\r\nContent-Encoding: zstd\r\nContent-Range: bytes 5-5/10000\r\n\r\n";
    const struct range_set set = {.ranges = {{0, 1}, {5, 1}}, .count = 2};
    struct request *request = ask();
    struct multipart multipart;
    char *body;

    request->reply.media_type = NULL;
    request->reply.coding = "zstd";
    assert_true(multipart_make(request, &set, &multipart));
    body = gather(&multipart);
    assert_null(memmem(body, multipart.length, "Content-Type", strlen("Content-Type")));
    assert_non_null(memmem(body, multipart.length, head, strlen(head)));
    free(body);
    request_free(request);
}

static int make_source(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH; i++)
        flat[i] = (uint8_t)(i * 2654435761u >> 13);
    config_defaults(&config);
    return zt_source_from_memory(flat, LENGTH, &source, NULL);
}

AROUND_ALL_TESTS(make_source, NULL)
