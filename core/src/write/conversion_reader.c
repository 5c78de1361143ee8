/* Reading a component for conversion: decoder, digest, and widened integers and floats, one block
 * at a time. */
#include "write/conversion_reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "model/locate.h"
#include "zt/component_view.h"

#define BLOCK_BYTES ((size_t)256 << 10)
/* Widening makes integers at most eight times as wide. */
#define GROWTH_MAX 8
#define WORD_MAX   8
/* What becomes of a block stays in the second-level cache. */
#define VALUES_BYTES ((size_t)256 << 10)

struct zt_conversion_reader {
    const struct zt_conversion *conversion;
    const struct zt_component *from; /* of the source */
    struct zt_component here;        /* a copy of it, placed in the model's own file */
    struct zt_decoder *decoder;
    struct zt_hasher *hasher; /* NULL if nothing is compared while reading */
    struct zt_digest stated;
    uint8_t *block;
    size_t block_size;
    struct zt_widening widening;
    uint8_t *widened; /* NULL if nothing is widened */
    uint64_t left;    /* elements that are still to become f32 */
    size_t kept;      /* bytes of an incomplete word at the block's start */
};

static enum zt_status name_failure(const struct zt_conversion_reader *reader, enum zt_status status,
                                   struct zt_error *error)
{
    const struct zt_model *source = reader->conversion->source;

    if (status != ZT_OK)
        zt_error_at(error, zt_object_name(zt_component_owner(source, reader->from)),
                    zt_component_name(reader->from));
    return status;
}

static enum zt_status wrong_digest(const struct zt_conversion_reader *reader, const char *actual,
                                   const char *stated, struct zt_error *error)
{
    return zt_fail(error, ZT_CORRUPT, NULL, reader->from->offset,
                   "digest is %.100s, the file states %.100s", actual, stated);
}

/* --- digests --- */

bool zt_digest_is_of_decoded(const struct zt_model *source, const struct zt_component *component)
{
    return !zt_digest_covers_stored(source) ||
           (zt_component_is_plain(component) && component->arrangement == NULL);
}

static enum zt_status check_ahead(const struct zt_conversion_reader *reader, struct zt_source *file,
                                  struct zt_error *error)
{
    struct zt_component_check check;
    struct zt_error found;
    enum zt_status status;

    zt_error_clear(&found);
    status =
        zt_component_check(reader->conversion->source, &reader->here, file, NULL, &check, &found);
    if (status == ZT_OK && check.verdict != ZT_VERDICT_FAILED)
        return ZT_OK;
    if (status == ZT_OK && found.status == ZT_OK)
        return wrong_digest(reader, check.actual, check.expected, error);
    if (error != NULL)
        *error = found;
    return found.status; /* the bytes do not decode */
}

static enum zt_status start_digest(struct zt_conversion_reader *reader, struct zt_source *file,
                                   struct zt_error *error)
{
    const struct zt_model *source = reader->conversion->source;
    enum zt_status status;

    if (reader->conversion->trusted || reader->from->digest == NULL)
        return ZT_OK;
    status = zt_component_digest(source, reader->from, &reader->stated, NULL);
    if (status == ZT_UNSUPPORTED)
        return ZT_OK;
    /* A malformed digest fails here too. */
    if (status != ZT_OK || !zt_digest_is_of_decoded(source, reader->from))
        return check_ahead(reader, file, error);
    if (zt_hasher_new(reader->stated.algorithm, &reader->hasher) != ZT_OK)
        return zt_fail_memory(error, "converting");
    return ZT_OK;
}

static enum zt_status compare_digest(struct zt_conversion_reader *reader, struct zt_error *error)
{
    struct zt_digest actual;
    char actual_text[ZT_DIGEST_TEXT_SIZE];
    char stated_text[ZT_DIGEST_TEXT_SIZE];

    if (reader->hasher == NULL)
        return ZT_OK;
    zt_hasher_finish(reader->hasher, &actual);
    zt_hasher_free(reader->hasher);
    reader->hasher = NULL;
    if (zt_digest_equal(&actual, &reader->stated))
        return ZT_OK;
    zt_digest_format(&actual, actual_text);
    zt_digest_format(&reader->stated, stated_text);
    return wrong_digest(reader, actual_text, stated_text, error);
}

/* --- wider floats --- */

static bool widens_floats(const struct zt_conversion_reader *reader)
{
    return reader->widening.widener != NULL;
}

static enum zt_status wrong_length(const struct zt_conversion_reader *reader,
                                   struct zt_error *error)
{
    return zt_fail(error, ZT_CORRUPT, NULL, reader->from->offset,
                   "the data is not as long as its shape requires");
}

/* As widen_block, for blocks of elements. The last one may have more than are left. */
static enum zt_status widen_floats(struct zt_conversion_reader *reader, size_t length,
                                   size_t *out_length, struct zt_error *error)
{
    const struct zt_widener *widener = reader->widening.widener;
    const size_t bytes = zt_widener_bytes(widener);
    const size_t blocks = length / bytes;
    size_t values = blocks * zt_widener_elements(widener);

    assert(length <= reader->block_size);
    zt_widen_blocks(widener, reader->block, blocks, (float *)(void *)reader->widened);
    if (values > reader->left) {
        if (values - reader->left >= zt_widener_elements(widener))
            return wrong_length(reader, error);
        values = (size_t)reader->left;
    }
    reader->left -= values;
    reader->kept = length - blocks * bytes;
    assert(reader->kept < bytes);
    memmove(reader->block, reader->block + blocks * bytes, reader->kept);
    *out_length = values * sizeof(float);
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        zt_words_reverse(reader->widened, *out_length, sizeof(float));
    return ZT_OK;
}

/* How many blocks to widen at a time: no more than there are. */
static size_t blocks_at_once(const struct zt_conversion_reader *reader)
{
    const size_t elements = zt_widener_elements(reader->widening.widener);
    const uint64_t blocks = reader->widening.elements / elements + 1;
    const size_t most = VALUES_BYTES / (elements * sizeof(float));

    assert(blocks > 0 && most > 0);
    return blocks < most ? (size_t)blocks : most;
}

/* --- wider integers --- */

static bool widens(const struct zt_conversion_reader *reader)
{
    return reader->widening.to_width > 0 || widens_floats(reader);
}

/* The block holds length bytes; the last of them may be an incomplete word. */
static enum zt_status widen_block(struct zt_conversion_reader *reader, size_t length,
                                  size_t *out_length, struct zt_error *error)
{
    const struct zt_widening *widening = &reader->widening;
    size_t words;

    assert(length <= reader->block_size);
    if (widens_floats(reader))
        return widen_floats(reader, length, out_length, error);
    words = length / widening->from_width;
    for (size_t i = 0; i < words; i++)
        if (!zt_widen(widening, reader->block + i * widening->from_width,
                      reader->widened + i * widening->to_width))
            return zt_fail(error, ZT_INVALID, NULL, reader->from->offset, "a negative index");
    reader->kept = length - words * widening->from_width;
    assert(reader->kept < widening->from_width);
    memmove(reader->block, reader->block + words * widening->from_width, reader->kept);
    *out_length = words * widening->to_width;
    return ZT_OK;
}

/* --- opening and reading --- */

/* Chooses the smallest block that suffices, because models may have a million small components. */
static enum zt_status make_blocks(struct zt_conversion_reader *reader, struct zt_error *error)
{
    const struct zt_widener *widener = reader->widening.widener;
    uint64_t length = reader->from->decoded_length;
    size_t widened_size;

    assert(reader->block == NULL && reader->widened == NULL);
    reader->block_size = length < BLOCK_BYTES ? (size_t)length + WORD_MAX : BLOCK_BYTES;
    widened_size = reader->block_size * GROWTH_MAX;
    if (widens_floats(reader)) {
        reader->block_size = blocks_at_once(reader) * zt_widener_bytes(widener);
        widened_size = blocks_at_once(reader) * zt_widener_elements(widener) * sizeof(float);
    }
    reader->block = malloc(reader->block_size);
    if (widens(reader))
        reader->widened = malloc(widened_size);
    return reader->block != NULL && (reader->widened != NULL || !widens(reader))
               ? ZT_OK
               : zt_fail_memory(error, "converting");
}

static enum zt_status open_decoder(struct zt_conversion_reader *reader, struct zt_error *error)
{
    struct zt_source *file = reader->conversion->files[reader->from->shard];
    enum zt_status status;

    if (file == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the file that holds its data is missing");
    reader->here = *reader->from;
    reader->here.shard = 0;
    status = make_blocks(reader, error);
    if (status == ZT_OK)
        status = start_digest(reader, file, error);
    return status == ZT_OK ? zt_decoder_open(&reader->here, file, &reader->decoder, error) : status;
}

enum zt_status zt_conversion_reader_open(const struct zt_conversion *conversion, uint32_t component,
                                         struct zt_conversion_reader **out_reader,
                                         struct zt_error *error)
{
    const struct zt_origin *origin = &conversion->projection->origins[component];
    struct zt_conversion_reader *reader = calloc(1, sizeof(*reader));
    enum zt_status status;

    assert(component < conversion->projection->model->component_count);
    if (reader == NULL)
        return zt_fail_memory(error, "converting");
    reader->conversion = conversion;
    reader->from = &conversion->source->components[origin->component];
    reader->widening =
        zt_widening_of(origin, reader->from, &conversion->projection->model->components[component]);
    reader->left = reader->widening.elements;
    status = open_decoder(reader, error);
    if (status != ZT_OK) {
        name_failure(reader, status, error);
        zt_conversion_reader_close(reader);
        return status;
    }
    *out_reader = reader;
    return ZT_OK;
}

static enum zt_status check_end(struct zt_conversion_reader *reader, struct zt_error *error)
{
    if (reader->kept > 0)
        return zt_fail(error, ZT_CORRUPT, NULL, reader->from->offset,
                       "the data ends inside a word");
    if (reader->left > 0)
        return wrong_length(reader, error);
    return compare_digest(reader, error);
}

static enum zt_status advance(const struct zt_conversion_reader *reader, size_t length,
                              struct zt_error *error)
{
    const struct zt_progress *progress = reader->conversion->progress;

    if (progress == NULL || progress->advance(progress->context, length))
        return ZT_OK;
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "stopped");
}

static enum zt_status read_block(struct zt_conversion_reader *reader, size_t *out_length,
                                 struct zt_error *error)
{
    size_t length = 0;
    enum zt_status status = zt_decoder_read(reader->decoder, reader->block + reader->kept,
                                            reader->block_size - reader->kept, &length, error);

    if (status != ZT_OK)
        return status;
    if (length == 0) {
        *out_length = 0;
        return check_end(reader, error);
    }
    if (reader->hasher != NULL)
        zt_hasher_update(reader->hasher, reader->block + reader->kept, length);
    status = advance(reader, length, error);
    *out_length = length + reader->kept;
    assert(*out_length <= reader->block_size);
    return status;
}

enum zt_status zt_conversion_reader_read(struct zt_conversion_reader *reader,
                                         const uint8_t **out_bytes, size_t *out_length,
                                         struct zt_error *error)
{
    size_t length = 0;
    enum zt_status status;

    do {
        status = read_block(reader, &length, error);
        if (status != ZT_OK || length == 0)
            break;
        if (widens(reader))
            status = widen_block(reader, length, &length, error);
        /* With less than one word there is nothing to return yet. */
    } while (status == ZT_OK && length == 0);
    if (status != ZT_OK)
        return name_failure(reader, status, error);
    *out_bytes = widens(reader) ? reader->widened : reader->block;
    *out_length = length;
    return ZT_OK;
}

void zt_conversion_reader_close(struct zt_conversion_reader *reader)
{
    if (reader == NULL)
        return;
    zt_decoder_close(reader->decoder);
    zt_hasher_free(reader->hasher);
    free(reader->block);
    free(reader->widened);
    free(reader);
}
