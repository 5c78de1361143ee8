/* Digests of components: which bytes they cover, and reading those bytes once to compare.
 *
 * zTensor up to 1.2 states the digest of the stored bytes, zTensor 2 that of the decoded ones, a
 * ZIP archive that of its entries once they are inflated. The content rules of types and layouts
 * are in content.c. */
#include "zt/verify.h"

#include <stdlib.h>
#include <string.h>

#include "coding/decoder.h"
#include "coding/inflate_stream.h"

/* Fits the second-level cache, so that hashing reads what was just copied from it. */
#define CHUNK_SIZE ((size_t)256 << 10)
/* An NPY header and a small array. */
#define CHUNK_MIN ((size_t)256)

bool zt_digest_covers_stored(const struct zt_model *model)
{
    return model->format != ZT_FORMAT_ZT2;
}

static struct zt_text digest_text(const struct zt_component *component)
{
    return (struct zt_text){component->digest, component->digest_length};
}

enum zt_status zt_component_digest(const struct zt_model *model,
                                   const struct zt_component *component,
                                   struct zt_digest *out_digest, struct zt_error *error)
{
    if (component->digest == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "the component states no digest");
    if (model->format == ZT_FORMAT_NPZ)
        return zt_digest_parse_zip(digest_text(component), out_digest, error);
    return zt_digest_parse(digest_text(component), out_digest, error);
}

bool zt_component_decoded_sha256(const struct zt_model *model, const struct zt_component *component,
                                 uint8_t out_sha256[32])
{
    struct zt_digest digest;

    if (zt_component_digest(model, component, &digest, NULL) != ZT_OK)
        return false;
    if (digest.algorithm != ZT_DIGEST_SHA256)
        return false;
    if (zt_digest_covers_stored(model) && !zt_component_is_plain(component))
        return false;
    memcpy(out_sha256, digest.bytes, 32);
    return true;
}

/* One pass over a component's bytes. */
struct pass {
    const struct zt_component *component;
    struct zt_source *source;
    const struct zt_progress *progress;
    struct zt_hasher *hasher;
    uint8_t *chunk;
    size_t chunk_size;
    uint64_t stored_bytes; /* read so far */
};

static enum zt_status advance(struct pass *pass, uint64_t stored_bytes, struct zt_error *error)
{
    uint64_t added = stored_bytes - pass->stored_bytes;

    pass->stored_bytes = stored_bytes;
    if (pass->progress != NULL && !pass->progress->advance(pass->progress->context, added))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "stopped");
    return ZT_OK;
}

static enum zt_status hash_stored(struct pass *pass, struct zt_error *error)
{
    uint64_t length = pass->component->length;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && pass->stored_bytes < length) {
        uint64_t left = length - pass->stored_bytes;
        size_t part = left < pass->chunk_size ? (size_t)left : pass->chunk_size;

        status = zt_source_read_at(pass->source, pass->component->offset + pass->stored_bytes,
                                   pass->chunk, part, error);
        if (status != ZT_OK)
            return status;
        zt_hasher_update(pass->hasher, pass->chunk, part);
        status = advance(pass, pass->stored_bytes + part, error);
    }
    return status;
}

static enum zt_status hash_decoded(struct pass *pass, struct zt_error *error)
{
    struct zt_decoder *decoder = NULL;
    size_t length = 1;
    enum zt_status status = zt_decoder_open(pass->component, pass->source, &decoder, error);

    while (status == ZT_OK && length > 0) {
        status = zt_decoder_read(decoder, pass->chunk, pass->chunk_size, &length, error);
        if (status == ZT_OK) {
            zt_hasher_update(pass->hasher, pass->chunk, length);
            status = advance(pass, zt_decoder_consumed(decoder), error);
        }
    }
    zt_decoder_close(decoder);
    return status;
}

/* --- entries of ZIP archives --- */

/* Bytes before the tensor's own that the entry's digest covers. */
static uint64_t lead_bytes(const struct zt_component *component)
{
    return component->arrangement != NULL ? component->arrangement->lead_bytes : 0;
}

/* The lead lies right before the component; it is not counted as stored bytes of it. */
static enum zt_status hash_lead(const struct pass *pass, struct zt_error *error)
{
    uint64_t left = lead_bytes(pass->component);
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && left > 0) {
        size_t part = left < pass->chunk_size ? (size_t)left : pass->chunk_size;

        status = zt_source_read_at(pass->source, pass->component->offset - left, pass->chunk, part,
                                   error);
        if (status == ZT_OK)
            zt_hasher_update(pass->hasher, pass->chunk, part);
        left -= part;
    }
    return status;
}

static enum zt_status hash_inflated(struct pass *pass, struct zt_error *error)
{
    const struct zt_component *component = pass->component;
    struct zt_inflate_stream *stream = NULL;
    size_t length = 1;
    enum zt_status status = zt_inflate_stream_new(pass->source, &stream, error);

    if (status == ZT_OK)
        status = zt_inflate_stream_start(stream, component->offset, component->length,
                                         lead_bytes(component) + component->decoded_length, error);
    while (status == ZT_OK && length > 0) {
        status = zt_inflate_stream_read(stream, pass->chunk, pass->chunk_size, &length, error);
        if (status == ZT_OK) {
            zt_hasher_update(pass->hasher, pass->chunk, length);
            status = advance(pass, zt_inflate_stream_consumed(stream), error);
        }
    }
    zt_inflate_stream_free(stream);
    return status;
}

static enum zt_status hash_entry(struct pass *pass, struct zt_error *error)
{
    enum zt_status status;

    if (pass->component->encoding == ZT_ENCODING_DEFLATE)
        return hash_inflated(pass, error);
    status = hash_lead(pass, error);
    return status == ZT_OK ? hash_stored(pass, error) : status;
}

/* --- the whole --- */

/* The smallest buffer that serves: models of a million small components are verified too. */
static size_t chunk_size(const struct zt_component *component)
{
    if (zt_component_is_plain(component) && component->length < CHUNK_SIZE)
        return component->length > CHUNK_MIN ? (size_t)component->length : CHUNK_MIN;
    return CHUNK_SIZE;
}

static enum zt_status hash_covered(struct pass *pass, const struct zt_model *model,
                                   struct zt_error *error)
{
    if (model->format == ZT_FORMAT_NPZ)
        return hash_entry(pass, error);
    if (zt_digest_covers_stored(model) || zt_component_is_plain(pass->component))
        return hash_stored(pass, error);
    return hash_decoded(pass, error);
}

static enum zt_status pass_run(struct pass *pass, const struct zt_model *model,
                               enum zt_digest_algorithm algorithm, struct zt_digest *out_actual,
                               struct zt_error *error)
{
    enum zt_status status = zt_hasher_new(algorithm, &pass->hasher);

    if (status == ZT_OK) {
        pass->chunk_size = chunk_size(pass->component);
        pass->chunk = malloc(pass->chunk_size);
    }
    if (pass->chunk == NULL) {
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for hashing");
        goto out;
    }
    status = hash_covered(pass, model, error);
    if (status == ZT_OK)
        zt_hasher_finish(pass->hasher, out_actual);
out:
    zt_hasher_free(pass->hasher);
    free(pass->chunk);
    return status;
}

/* The file's own text, cut where it does not fit; never inside a character. */
static void copy_expected(const struct zt_component *component, char out_text[ZT_DIGEST_TEXT_SIZE])
{
    size_t length = component->digest_length;

    if (length >= ZT_DIGEST_TEXT_SIZE) {
        length = ZT_DIGEST_TEXT_SIZE - 1;
        while (length > 0 && ((unsigned char)component->digest[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(out_text, component->digest, length);
    out_text[length] = '\0';
}

struct stated_digest {
    enum zt_digest_algorithm algorithm;
    bool is_possible; /* else it is the digest of no bytes */
    struct zt_digest digest;
};

/* Whether the stated digest can be judged at all; reads nothing. */
static bool is_judgeable(const struct zt_model *model, const struct zt_component *component,
                         struct stated_digest *out_stated)
{
    enum zt_status status = zt_component_digest(model, component, &out_stated->digest, NULL);

    if (!zt_digest_covers_stored(model) && component->encoding == ZT_ENCODING_UNKNOWN)
        return false;
    out_stated->is_possible = status == ZT_OK;
    if (status == ZT_CORRUPT)
        return zt_digest_algorithm(digest_text(component), &out_stated->algorithm);
    out_stated->algorithm = out_stated->digest.algorithm;
    return status == ZT_OK;
}

enum zt_status zt_component_check(const struct zt_model *model,
                                  const struct zt_component *component, struct zt_source *source,
                                  const struct zt_progress *progress,
                                  struct zt_component_check *out_check, struct zt_error *error)
{
    struct zt_component_check check = {.verdict = ZT_VERDICT_UNDIGESTED};
    struct pass pass = {.component = component, .source = source, .progress = progress};
    struct stated_digest stated;
    struct zt_digest actual;
    enum zt_status status = ZT_OK;

    if (component->digest != NULL) {
        copy_expected(component, check.expected);
        check.verdict = ZT_VERDICT_UNSUPPORTED;
        if (source != NULL && is_judgeable(model, component, &stated)) {
            status = pass_run(&pass, model, stated.algorithm, &actual, error);
            check.hashed_bytes = pass.stored_bytes;
            check.verdict = ZT_VERDICT_FAILED;
        }
    }
    if (check.verdict == ZT_VERDICT_FAILED && status == ZT_OK) {
        zt_digest_format(&actual, check.actual);
        if (stated.is_possible && zt_digest_equal(&stated.digest, &actual))
            check.verdict = ZT_VERDICT_VERIFIED;
    }
    /* Bytes that do not decode are an answer; what kept us from reading them is not. */
    if (status != ZT_OK && status != ZT_CORRUPT)
        return status;
    *out_check = check;
    return ZT_OK;
}
