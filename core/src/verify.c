/* Digests of components: which bytes they cover, and reading those bytes once to compare.
 *
 * zTensor up to 1.2 states the digest of the stored bytes, zTensor 2 that of the decoded ones. The content rules of
 * types and layouts are in content.c. */
#include "zt/verify.h"

#include <stdlib.h>
#include <string.h>

#include "decoder.h"

/* Fits the second-level cache, so that hashing reads what was just copied from it. */
#define CHUNK_SIZE ((size_t)256 << 10)

bool zt_digest_covers_stored(const struct zt_model *model)
{
    return model->format != ZT_FORMAT_ZT2;
}

static struct zt_text digest_text(const struct zt_component *component)
{
    return (struct zt_text){component->digest, component->digest_length};
}

bool zt_component_decoded_sha256(const struct zt_model *model, const struct zt_component *component,
                                 uint8_t out_sha256[32])
{
    struct zt_digest digest;

    if (component->digest == NULL || zt_digest_parse(digest_text(component), &digest, NULL) != ZT_OK)
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

        status =
            zt_source_read_at(pass->source, pass->component->offset + pass->stored_bytes, pass->chunk, part, error);
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

/* The smallest buffer that serves: models of a million small components are verified too. */
static size_t chunk_size(const struct zt_component *component)
{
    if (zt_component_is_plain(component) && component->length < CHUNK_SIZE)
        return component->length > 0 ? (size_t)component->length : 1;
    return CHUNK_SIZE;
}

static enum zt_status pass_run(struct pass *pass, bool stored, enum zt_digest_algorithm algorithm,
                               struct zt_digest *out_actual, struct zt_error *error)
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
    status = stored ? hash_stored(pass, error) : hash_decoded(pass, error);
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

/* Whether the stated digest can be judged at all; reads nothing. */
static bool is_judgeable(const struct zt_model *model, const struct zt_component *component,
                         struct zt_digest *out_stated)
{
    if (component->shard != 0 || zt_digest_parse(digest_text(component), out_stated, NULL) != ZT_OK)
        return false;
    return zt_digest_covers_stored(model) || component->encoding != ZT_ENCODING_UNKNOWN;
}

enum zt_status zt_component_check(const struct zt_model *model, const struct zt_component *component,
                                  struct zt_source *source, const struct zt_progress *progress,
                                  struct zt_component_check *out_check, struct zt_error *error)
{
    struct zt_component_check check = {.verdict = ZT_VERDICT_UNDIGESTED};
    struct pass pass = {.component = component, .source = source, .progress = progress};
    struct zt_digest stated, actual;
    enum zt_status status = ZT_OK;

    if (component->digest != NULL) {
        copy_expected(component, check.expected);
        check.verdict = ZT_VERDICT_UNSUPPORTED;
        if (is_judgeable(model, component, &stated)) {
            bool stored = zt_digest_covers_stored(model) || zt_component_is_plain(component);

            status = pass_run(&pass, stored, stated.algorithm, &actual, error);
            check.hashed_bytes = pass.stored_bytes;
            check.verdict = ZT_VERDICT_FAILED;
        }
    }
    if (check.verdict == ZT_VERDICT_FAILED && status == ZT_OK) {
        zt_digest_format(&actual, check.actual);
        if (zt_digest_equal(&stated, &actual))
            check.verdict = ZT_VERDICT_VERIFIED;
    }
    /* Bytes that do not decode are an answer; what kept us from reading them is not. */
    if (status != ZT_OK && status != ZT_CORRUPT)
        return status;
    *out_check = check;
    return ZT_OK;
}
