/* Reads the statements of the header and compares them with the body; s3api_coding.c decodes. */
#include "s3/write/s3api_body.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "http/exchange/json_body.h"
#include "http/exchange/signed_request.h"
#include "http/fields/grammar.h"
#include "s3/write/s3api_coding.h"
#include "s3/write/s3api_placement.h"

static bool fail(struct s3api_body *body, enum s3api_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes the first mistake. Returns false. */
static bool fail(struct s3api_body *body, enum s3api_error error, const char *format, ...)
{
    va_list arguments;

    if (body->has_failed)
        return false;
    body->has_failed = true;
    body->error = error;
    va_start(arguments, format);
    vsnprintf(body->why, sizeof(body->why), format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_memory(struct s3api_body *body)
{
    return fail(body, S3API_INTERNAL_ERROR, "the server is out of memory");
}

/* --- the header --- */

/* Calls visit for the words of a list that commas separate. */
static bool visit_words(struct s3api_body *body, const char *list,
                        bool (*visit)(struct s3api_body *body, struct zt_text word))
{
    bool goes_on = true;

    for (const char *at = list; at != NULL && *at != '\0' && goes_on;) {
        size_t length;

        at += strspn(at, " \t,");
        length = strcspn(at, ",");
        while (length > 0 && is_one_of(at[length - 1], " \t"))
            length--;
        goes_on = length == 0 || visit(body, (struct zt_text){at, length});
        at += strcspn(at, ",");
    }
    return goes_on;
}

static bool is_other_word(struct s3api_body *body, struct zt_text word)
{
    (void)body;
    return word.length != strlen("aws-chunked") ||
           strncasecmp(word.bytes, "aws-chunked", word.length) != 0;
}

static bool is_streaming(enum sigv4_payload payload)
{
    return payload == SIGV4_PAYLOAD_UNSIGNED_TRAILER || payload == SIGV4_PAYLOAD_CHUNKS ||
           payload == SIGV4_PAYLOAD_CHUNKS_TRAILER;
}

/* Clients that do not sign leave x-amz-content-sha256 out. Content-Encoding alone says nothing:
 * some set it as the object's metadata. */
static bool is_coded(struct s3api_body *body, struct request *request)
{
    if (is_streaming(body->stated->payload))
        return true;
    if (body->stated->payload == SIGV4_PAYLOAD_SHA256 ||
        (request_header(request, "x-amz-decoded-content-length") == NULL &&
         request_header(request, "x-amz-trailer") == NULL))
        return false;
    return !visit_words(body, request_header(request, "Content-Encoding"), is_other_word);
}

static bool read_decoded_length(struct s3api_body *body, const char *text)
{
    if (text == NULL)
        return fail(body, S3API_MISSING_CONTENT_LENGTH,
                    "an aws-chunked body needs x-amz-decoded-content-length");
    return zt_decimal_read(zt_text_from(text), INT64_MAX, &body->length) ||
           fail(body, S3API_INVALID_ARGUMENT, "x-amz-decoded-content-length is not a number");
}

static bool begin_coding(struct s3api_body *body, struct request *request)
{
    body->length = request_body_length(request);
    if (!is_coded(body, request))
        return true;
    if (!read_decoded_length(body, request_header(request, "x-amz-decoded-content-length")))
        return false;
    body->coding = s3api_coding_new(body->stated);
    return body->coding != NULL || fail_memory(body);
}

static bool computes(const struct s3api_body *body, enum checksum checksum)
{
    return checksum != CHECKSUM_SHA256 || !body->owner_has_sha256;
}

static bool add(struct s3api_body *body, enum checksum checksum)
{
    return !computes(body, checksum) || checksums_add(&body->checksums, checksum) ||
           fail_memory(body);
}

static bool state(struct s3api_body *body, enum checksum checksum, struct zt_text value)
{
    if (!checksum_read(checksum, value, &body->values[checksum]))
        return fail(body, checksum == CHECKSUM_MD5 ? S3API_INVALID_DIGEST : S3API_INVALID_REQUEST,
                    "%s is not the base64 of such a checksum", checksum_field(checksum));
    body->is_stated[checksum] = true;
    return true;
}

/* Takes '-' and a number of parts off the end of a checksum. Otherwise returns 0, and the text is
 * unchanged. */
static uint32_t cut_part_count(struct zt_text *text)
{
    const char *dash = memrchr(text->bytes, '-', text->length);
    uint64_t count;

    if (dash == NULL || !zt_decimal_read(zt_text_from(dash + 1), S3API_PARTS_MAX, &count) ||
        count == 0)
        return 0;
    text->length = (size_t)(dash - text->bytes);
    return (uint32_t)count;
}

static bool read_checksum(struct s3api_body *body, enum checksum checksum, struct zt_text value)
{
    if (body->may_have_composites && checksum != CHECKSUM_MD5)
        body->part_counts[checksum] = cut_part_count(&value);
    return state(body, checksum, value) && add(body, checksum);
}

static bool read_checksums(struct s3api_body *body, struct request *request)
{
    for (enum checksum i = 0; i < CHECKSUMS; i++) {
        const char *value = request_header(request, checksum_field(i));

        if (value != NULL && !read_checksum(body, i, zt_text_from(value)))
            return false;
    }
    return body->stated->payload != SIGV4_PAYLOAD_SHA256 || add(body, CHECKSUM_SHA256);
}

static bool announce(struct s3api_body *body, struct zt_text word)
{
    char name[64];
    enum checksum checksum;

    for (size_t i = 0; i < word.length && i < sizeof(name); i++)
        name[i] = is_alpha(word.bytes[i]) ? (char)(word.bytes[i] | 0x20) : word.bytes[i];
    if (word.length > sizeof(name) ||
        !checksum_find_field((struct zt_text){name, word.length}, &checksum))
        return fail(body, S3API_INVALID_REQUEST, "x-amz-trailer names an unknown checksum");
    body->is_announced[checksum] = true;
    return add(body, checksum);
}

static bool read_trailer_names(struct s3api_body *body, struct request *request)
{
    const char *names = request_header(request, "x-amz-trailer");

    if (names == NULL)
        return true;
    if (body->coding == NULL)
        return fail(body, S3API_INVALID_REQUEST, "only an aws-chunked body can have a trailer");
    return visit_words(body, names, announce);
}

/* Clients name the algorithm in a field, and state the value in another one or in a trailer. */
static bool check_algorithm(struct s3api_body *body, struct request *request)
{
    const char *name = request_header(request, "x-amz-sdk-checksum-algorithm");
    enum checksum checksum;

    if (name == NULL)
        return true;
    if (!checksum_find_name(zt_text_from(name), &checksum))
        return fail(body, S3API_INVALID_REQUEST,
                    "x-amz-sdk-checksum-algorithm names an unknown algorithm");
    for (enum checksum i = 0; i < CHECKSUM_MD5; i++)
        if (body->is_stated[i] || body->is_announced[i])
            return true;
    return fail(body, S3API_INVALID_REQUEST,
                "x-amz-sdk-checksum-algorithm is set, but no checksum is stated");
}

static bool read_payload(struct s3api_body *body, struct request *request)
{
    body->stated = signed_request_body(request);
    if (body->stated == NULL)
        return fail_memory(body);
    return body->stated->payload != SIGV4_PAYLOAD_UNKNOWN ||
           fail(body, S3API_INVALID_ARGUMENT,
                "x-amz-content-sha256 is neither a SHA-256 nor a known form of payload");
}

bool s3api_body_begin(struct s3api_body *body, struct request *request,
                      const struct body_receiver *inner, bool owner_has_sha256)
{
    assert(!body->has_failed && body->coding == NULL);
    body->inner = inner;
    body->owner_has_sha256 = owner_has_sha256;
    if (read_payload(body, request) && begin_coding(body, request) &&
        read_checksums(body, request) && read_trailer_names(body, request) &&
        check_algorithm(body, request))
        return true;
    s3api_body_reply_failure(request, body);
    return false;
}

/* --- the body --- */

struct delivery {
    struct s3api_body *body;
    struct request *request;
    const struct body_piece *piece; /* as it was received */
};

/* A piece can be kept only once, so only a run of more than half of it keeps it. Joined runs are
 * not in the piece. */
static struct piece_keeper *keeper_of(const struct body_piece *piece, struct zt_text data)
{
    const char *start = piece->bytes;
    const bool is_inside = data.bytes >= start && data.bytes < start + piece->length;

    assert(!is_inside || data.length <= piece->length);
    return is_inside && data.length > piece->length / 2 ? piece->keeper : NULL;
}

static bool deliver(void *context, struct zt_text data)
{
    struct delivery *delivery = context;
    struct s3api_body *body = delivery->body;
    const struct body_piece piece = {data.bytes, data.length, body->received,
                                     delivery->piece->on_loop, keeper_of(delivery->piece, data)};

    if (data.length > body->length - body->received)
        return fail(body, S3API_INCOMPLETE_BODY, "the body is longer than its stated length");
    body->received += data.length;
    assert(data.length > 0 && body->received <= body->length);
    body->inner->receive(delivery->request, &piece);
    return true;
}

static bool take_field(void *context, struct zt_text name, struct zt_text value)
{
    const struct delivery *delivery = context;
    enum checksum checksum;

    if (!checksum_find_field(name, &checksum))
        return true;
    if (!delivery->body->is_announced[checksum])
        return fail(delivery->body, S3API_INVALID_REQUEST,
                    "the trailer has a checksum that x-amz-trailer does not name");
    return state(delivery->body, checksum, value);
}

static bool decode(struct delivery *delivery, struct zt_text piece)
{
    const struct s3api_coding_outputs outputs = {deliver, take_field, delivery};
    struct s3api_body *body = delivery->body;

    assert(body->coding != NULL && !body->has_failed);
    switch (s3api_coding_take(body->coding, piece, &outputs)) {
    case S3API_CODING_SOUND:
    case S3API_CODING_STOPPED:
        break;
    case S3API_CODING_MALFORMED:
        return fail(body, S3API_INVALID_REQUEST, "the body is not aws-chunked: %s",
                    s3api_coding_why(body->coding));
    case S3API_CODING_SIGNATURE:
        return fail(body, S3API_SIGNATURE_DOES_NOT_MATCH,
                    "the signature of a chunk or of the trailer is wrong");
    case S3API_CODING_NO_MEMORY:
        return fail_memory(body);
    }
    return !body->has_failed;
}

bool s3api_body_receive(struct s3api_body *body, struct request *request,
                        const struct body_piece *piece)
{
    struct delivery delivery = {body, request, piece};
    const struct zt_text bytes = {piece->bytes, piece->length};

    assert(body->inner != NULL);
    if (body->has_failed)
        return false;
    if (bytes.length == 0)
        return true;
    return body->coding != NULL ? decode(&delivery, bytes) : deliver(&delivery, bytes);
}

bool s3api_body_wants_hash(const struct s3api_body *body)
{
    assert(body->inner != NULL);
    for (enum checksum i = 0; i < CHECKSUMS; i++)
        if (body->checksums.hashers[i] != NULL)
            return true;
    return false;
}

void s3api_body_hash(struct s3api_body *body, const void *bytes, size_t length)
{
    checksums_update(&body->checksums, bytes, length);
}

/* --- the end --- */

static bool is_complete(struct s3api_body *body)
{
    if (body->coding != NULL && !s3api_coding_is_over(body->coding))
        return fail(body, S3API_INCOMPLETE_BODY, "the body ends before its last chunk");
    if (body->length != UINT64_MAX && body->received != body->length)
        return fail(body, S3API_INCOMPLETE_BODY, "the body is shorter than its stated length");
    for (enum checksum i = 0; i < CHECKSUMS; i++)
        if (body->is_announced[i] && !body->is_stated[i])
            return fail(body, S3API_INVALID_REQUEST, "the trailer lacks %s", checksum_field(i));
    return true;
}

/* sha256 is the value of CHECKSUM_SHA256; NULL if the request states none. */
static bool compare(struct s3api_body *body, const uint8_t *sha256)
{
    const bool has_payload = body->stated->payload == SIGV4_PAYLOAD_SHA256;

    assert(sha256 != NULL || !(has_payload || body->is_stated[CHECKSUM_SHA256]));
    if (has_payload && memcmp(body->stated->sha256, sha256, sizeof(body->stated->sha256)) != 0)
        return fail(body, S3API_XAMZ_CONTENT_SHA256_MISMATCH,
                    "the body does not match x-amz-content-sha256");
    for (enum checksum i = 0; i < CHECKSUMS; i++) {
        struct zt_digest value;

        if (!body->is_stated[i])
            continue;
        if (i == CHECKSUM_SHA256)
            memcpy(value.bytes, sha256, body->values[i].length_bytes);
        else
            value = checksums_finish(&body->checksums, i);
        if (memcmp(value.bytes, body->values[i].bytes, body->values[i].length_bytes) != 0)
            return fail(body, S3API_BAD_DIGEST, "the body does not match %s", checksum_field(i));
    }
    return true;
}

bool s3api_body_finish(struct s3api_body *body, const uint8_t sha256[32])
{
    struct zt_digest computed;

    assert((sha256 != NULL) == body->owner_has_sha256);
    if (body->has_failed || !is_complete(body))
        return false;
    if (sha256 == NULL && body->checksums.hashers[CHECKSUM_SHA256] != NULL) {
        computed = checksums_finish(&body->checksums, CHECKSUM_SHA256);
        sha256 = computed.bytes;
    }
    return compare(body, sha256);
}

enum outcome s3api_body_reply_failure(struct request *request, const struct s3api_body *body)
{
    assert(body->has_failed);
    return s3api_problem(request, body->error, "%s", body->why);
}

static void reply_checksum(struct request *request, enum checksum checksum,
                           const struct zt_digest *value)
{
    char text[CHECKSUM_TEXT_SIZE];

    checksum_write(value, text);
    representation_field(&request->reply, checksum_field(checksum),
                         request_print(request, "%s", text));
}

bool s3api_body_reply_checksums(struct request *request, const struct s3api_body *body)
{
    bool is_any = false;

    assert(!body->has_failed);
    for (enum checksum i = 0; i < CHECKSUM_MD5; i++)
        if (body->is_stated[i]) {
            reply_checksum(request, i, &body->values[i]);
            is_any = true;
        }
    if (is_any)
        representation_field(&request->reply, "x-amz-checksum-type", "FULL_OBJECT");
    return is_any;
}

void s3api_reply_sha256(struct request *request, const uint8_t sha256[32])
{
    struct zt_digest value = {.length_bytes = 32};

    memcpy(value.bytes, sha256, value.length_bytes);
    reply_checksum(request, CHECKSUM_SHA256, &value);
    representation_field(&request->reply, "x-amz-checksum-type", "FULL_OBJECT");
}

void s3api_body_free(struct s3api_body *body)
{
    s3api_coding_free(body->coding);
    body->coding = NULL;
    checksums_free(&body->checksums);
}

/* --- documents --- */

static void keep(struct request *request, const struct body_piece *piece)
{
    struct s3api_document *document = request->context;

    s3api_body_hash(&document->body, piece->bytes, piece->length);
    document->inner->receive(request, piece);
}

static void receive_document(struct request *request, const struct body_piece *piece)
{
    struct s3api_document *document = request->context;

    (void)s3api_body_receive(&document->body, request, piece);
}

bool s3api_document_begin(struct request *request)
{
    static const struct body_receiver keeper = {.receive = keep};
    static const struct body_receiver receiver = {.receive = receive_document};
    struct s3api_document *document = request->context;

    assert(request->json_body != NULL && document->inner == NULL);
    document->inner = request->receiver;
    request->receiver = &receiver;
    return s3api_body_begin(&document->body, request, &keeper, false);
}

bool s3api_document_finish(struct request *request)
{
    struct s3api_document *document = request->context;

    if (s3api_body_finish(&document->body, NULL))
        return !json_body_refuse_received(request);
    s3api_body_reply_failure(request, &document->body);
    return false;
}
