/* Each signature covers the one before it, so one wrong chunk breaks off the body. The bytes of a
 * chunk are stored before its signature is known; they count only if the whole body is sound. */
#include "s3/write/s3api_coding.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/fields/aws_chunked.h"
#include "zt/digest.h"

/* A shorter run of data is copied, so that the store gets no tiny writes. */
#define SMALL_BYTES  ((size_t)4 << 10)
#define GATHER_BYTES ((size_t)32 << 10)

#define SIGNATURE_FIELD "x-amz-trailer-signature"

struct s3api_coding {
    struct aws_chunked decoder;
    const struct sigv4_body *stated;
    struct zt_hasher *hasher;    /* of the chunk or of the trailer; NULL unless that is verified */
    char claimed[AWS_HEX_SIZE];  /* the signature of the chunk, as sent */
    char previous[AWS_HEX_SIZE]; /* the signature before it */
    bool is_signed;              /* the trailer's signature was right; no field may follow */
    size_t gathered_length;
    char gathered[GATHER_BYTES];
};

static bool has_signed_trailer(const struct sigv4_body *stated)
{
    return stated->payload == SIGV4_PAYLOAD_CHUNKS_TRAILER;
}

struct s3api_coding *s3api_coding_new(const struct sigv4_body *stated)
{
    struct s3api_coding *coding = malloc(sizeof(*coding));

    if (coding == NULL)
        return NULL;
    coding->stated = stated;
    coding->hasher = NULL;
    coding->is_signed = false;
    coding->gathered_length = 0;
    coding->claimed[0] = '\0';
    snprintf(coding->previous, sizeof(coding->previous), "%s",
             stated->is_verified ? stated->seed : "");
    aws_chunked_begin(&coding->decoder, has_signed_trailer(stated));
    return coding;
}

void s3api_coding_free(struct s3api_coding *coding)
{
    if (coding == NULL)
        return;
    zt_hasher_free(coding->hasher);
    free(coding);
}

const char *s3api_coding_why(const struct s3api_coding *coding)
{
    return coding->decoder.why != NULL ? coding->decoder.why
                                       : "a field follows the signature of the trailer";
}

bool s3api_coding_is_over(const struct s3api_coding *coding)
{
    return aws_chunked_is_over(&coding->decoder);
}

/* --- signatures --- */

static bool is_verified(const struct s3api_coding *coding)
{
    assert(coding->stated != NULL);
    return coding->stated->is_verified &&
           (coding->stated->payload == SIGV4_PAYLOAD_CHUNKS || has_signed_trailer(coding->stated));
}

/* Starts the hash for the next signature. */
static enum s3api_coding_result begin_hash(struct s3api_coding *coding)
{
    assert(coding->hasher == NULL);
    return zt_hasher_new(ZT_DIGEST_SHA256, &coding->hasher) == ZT_OK ? S3API_CODING_SOUND
                                                                     : S3API_CODING_NO_MEMORY;
}

typedef bool (*sign_function)(const struct sigv4_body *body, const char previous[AWS_HEX_SIZE],
                              const uint8_t sha256[32], char out_hex[AWS_HEX_SIZE]);

/* Ends the hash, and compares the signature of the hashed bytes. */
static enum s3api_coding_result check(struct s3api_coding *coding, struct zt_text claimed,
                                      sign_function sign)
{
    char expected[AWS_HEX_SIZE];
    struct zt_digest digest;

    assert(coding->hasher != NULL);
    zt_hasher_finish(coding->hasher, &digest);
    zt_hasher_free(coding->hasher);
    coding->hasher = NULL;
    if (!sign(coding->stated, coding->previous, digest.bytes, expected))
        return S3API_CODING_NO_MEMORY;
    if (!sigv4_is_signature(claimed, expected))
        return S3API_CODING_SIGNATURE;
    memcpy(coding->previous, expected, sizeof(expected));
    return S3API_CODING_SOUND;
}

static enum s3api_coding_result begin_chunk(struct s3api_coding *coding,
                                            const struct aws_chunked_part *part)
{
    if (!is_verified(coding))
        return S3API_CODING_SOUND;
    if (part->signature.length >= sizeof(coding->claimed))
        return S3API_CODING_SIGNATURE;
    snprintf(coding->claimed, sizeof(coding->claimed), "%.*s", (int)part->signature.length,
             part->signature.length > 0 ? part->signature.bytes : "");
    return begin_hash(coding);
}

/* After the last chunk the trailer is hashed. */
static enum s3api_coding_result end_chunk(struct s3api_coding *coding)
{
    enum s3api_coding_result result;

    if (!is_verified(coding))
        return S3API_CODING_SOUND;
    result = check(coding, zt_text_from(coding->claimed), sigv4_sign_chunk);
    if (result == S3API_CODING_SOUND && coding->decoder.state == AWS_CHUNKED_AT_FIELD &&
        has_signed_trailer(coding->stated))
        result = begin_hash(coding);
    return result;
}

/* --- data and fields --- */

static enum s3api_coding_result put(const struct s3api_coding_outputs *outputs, struct zt_text data)
{
    assert(data.length > 0);
    return outputs->take_data(outputs->context, data) ? S3API_CODING_SOUND : S3API_CODING_STOPPED;
}

static enum s3api_coding_result put_gathered(struct s3api_coding *coding,
                                             const struct s3api_coding_outputs *outputs)
{
    const struct zt_text data = {coding->gathered, coding->gathered_length};

    assert(data.length <= GATHER_BYTES);
    coding->gathered_length = 0;
    return data.length > 0 ? put(outputs, data) : S3API_CODING_SOUND;
}

static enum s3api_coding_result take_data(struct s3api_coding *coding, struct zt_text data,
                                          const struct s3api_coding_outputs *outputs)
{
    enum s3api_coding_result result = S3API_CODING_SOUND;

    assert((coding->hasher != NULL) == is_verified(coding));
    if (coding->hasher != NULL)
        zt_hasher_update(coding->hasher, data.bytes, data.length);
    if (data.length >= SMALL_BYTES || data.length > GATHER_BYTES - coding->gathered_length)
        result = put_gathered(coding, outputs);
    if (data.length >= SMALL_BYTES)
        return result == S3API_CODING_SOUND ? put(outputs, data) : result;
    memcpy(coding->gathered + coding->gathered_length, data.bytes, data.length);
    coding->gathered_length += data.length;
    return result;
}

static enum s3api_coding_result take_field(struct s3api_coding *coding,
                                           const struct aws_chunked_part *part,
                                           const struct s3api_coding_outputs *outputs)
{
    enum s3api_coding_result result;

    if (coding->is_signed)
        return S3API_CODING_MALFORMED;
    if (zt_text_is(part->name, SIGNATURE_FIELD)) {
        if (coding->hasher == NULL)
            return S3API_CODING_SOUND;
        result = check(coding, part->text, sigv4_sign_trailer);
        coding->is_signed = result == S3API_CODING_SOUND;
        return result;
    }
    if (coding->hasher != NULL) {
        zt_hasher_update(coding->hasher, part->name.bytes, part->name.length);
        zt_hasher_update(coding->hasher, ":", 1);
        zt_hasher_update(coding->hasher, part->text.bytes, part->text.length);
        zt_hasher_update(coding->hasher, "\n", 1);
    }
    return outputs->take_field(outputs->context, part->name, part->text) ? S3API_CODING_SOUND
                                                                         : S3API_CODING_STOPPED;
}

static enum s3api_coding_result take_event(struct s3api_coding *coding,
                                           enum aws_chunked_event event,
                                           const struct aws_chunked_part *part,
                                           const struct s3api_coding_outputs *outputs)
{
    switch (event) {
    case AWS_CHUNKED_CHUNK:
        return begin_chunk(coding, part);
    case AWS_CHUNKED_DATA:
        return take_data(coding, part->text, outputs);
    case AWS_CHUNKED_COMPLETE:
        return end_chunk(coding);
    case AWS_CHUNKED_FIELD:
        return take_field(coding, part, outputs);
    case AWS_CHUNKED_MORE:
    case AWS_CHUNKED_MALFORMED:
        break;
    }
    return S3API_CODING_MALFORMED;
}

enum s3api_coding_result s3api_coding_take(struct s3api_coding *coding, struct zt_text piece,
                                           const struct s3api_coding_outputs *outputs)
{
    enum s3api_coding_result result = S3API_CODING_SOUND;
    struct aws_chunked_part part;
    enum aws_chunked_event event;

    while (result == S3API_CODING_SOUND &&
           (event = aws_chunked_next(&coding->decoder, &piece, &part)) != AWS_CHUNKED_MORE)
        result = take_event(coding, event, &part, outputs);
    return result == S3API_CODING_SOUND ? put_gathered(coding, outputs) : result;
}
