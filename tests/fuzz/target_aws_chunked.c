/* aws-chunked: the same events whatever the pieces, data of exactly the stated sizes, and no event
 * after the end. The first byte is the length of the pieces, its lowest bit whether the trailer is
 * signed. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/aws_chunked.h"

struct decoded {
    struct aws_chunked decoder;
    uint64_t left; /* of the chunk */
    uint64_t data_length;
    unsigned chunks;
    unsigned fields;
    uint64_t sum; /* of data and fields */
};

static void add(struct decoded *decoded, struct zt_text text)
{
    for (size_t i = 0; i < text.length; i++)
        decoded->sum = decoded->sum * 31 + (unsigned char)text.bytes[i];
}

static void check_data(struct decoded *decoded, const struct aws_chunked_part *part,
                       struct zt_text piece)
{
    FUZZ_ASSERT(part->text.length > 0 && part->text.length <= decoded->left);
    FUZZ_ASSERT(part->text.bytes + part->text.length == piece.bytes);
    decoded->left -= part->text.length;
    decoded->data_length += part->text.length;
    add(decoded, part->text);
}

static void check(struct decoded *decoded, enum aws_chunked_event event,
                  const struct aws_chunked_part *part, struct zt_text piece)
{
    if (event == AWS_CHUNKED_CHUNK) {
        FUZZ_ASSERT(decoded->left == 0 && part->signature.length < AWS_CHUNKED_LINE_MAX);
        decoded->left = part->size;
        decoded->chunks++;
        add(decoded, part->signature);
    } else if (event == AWS_CHUNKED_DATA) {
        check_data(decoded, part, piece);
    } else if (event == AWS_CHUNKED_COMPLETE) {
        FUZZ_ASSERT(decoded->left == 0);
    } else {
        FUZZ_ASSERT(event == AWS_CHUNKED_FIELD && part->name.length > 0);
        FUZZ_ASSERT(++decoded->fields <= AWS_CHUNKED_FIELDS_MAX);
        add(decoded, part->name);
        add(decoded, part->text);
    }
}

static struct decoded decode(const uint8_t *bytes, size_t length, size_t step, bool is_signed)
{
    struct decoded decoded = {.left = 0};

    aws_chunked_begin(&decoded.decoder, is_signed);
    for (size_t at = 0; at < length; at += step) {
        struct zt_text piece = {(const char *)bytes + at, length - at < step ? length - at : step};
        struct aws_chunked_part part;
        enum aws_chunked_event event;

        while ((event = aws_chunked_next(&decoded.decoder, &piece, &part)) != AWS_CHUNKED_MORE) {
            if (event == AWS_CHUNKED_MALFORMED)
                return decoded;
            check(&decoded, event, &part, piece);
        }
        FUZZ_ASSERT(piece.length == 0);
    }
    return decoded;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct decoded whole;
    struct decoded pieces;
    bool is_signed;

    if (length < 2)
        return 0;
    is_signed = (bytes[0] & 1) != 0;
    whole = decode(bytes + 1, length - 1, length, is_signed);
    pieces = decode(bytes + 1, length - 1, (size_t)bytes[0] + 1, is_signed);
    FUZZ_ASSERT(aws_chunked_is_over(&whole.decoder) == aws_chunked_is_over(&pieces.decoder));
    FUZZ_ASSERT((whole.decoder.why == NULL) == (pieces.decoder.why == NULL));
    FUZZ_ASSERT(whole.chunks == pieces.chunks && whole.fields == pieces.fields);
    FUZZ_ASSERT(whole.data_length == pieces.data_length && whole.sum == pieces.sum);
    if (aws_chunked_is_over(&whole.decoder))
        FUZZ_ASSERT(whole.left == 0);
    return 0;
}
