/* Feeding a component: decoder, digest and change of integers, one block at a time. */
#include "write/conversion_reader.h"

#include <stdlib.h>
#include <string.h>

#include "model/extents.h"

#define BLOCK_BYTES ((size_t)256 << 10)
/* Integers become eight times as wide at most. */
#define GROWTH_MAX 8
#define WORD_MAX   8

struct zt_conversion_reader {
    const struct zt_conversion *conversion;
    const struct zt_component *from; /* the source's */
    struct zt_component here;        /* the same, as if its file were the model's own */
    struct zt_decoder *decoder;
    struct zt_hasher *hasher; /* NULL where nothing is compared on the way */
    struct zt_digest stated;
    uint8_t *block;
    size_t block_size;
    /* Integers. */
    bool changes;
    uint8_t *changed;
    unsigned from_width;
    unsigned to_width;
    bool is_signed;
    size_t kept; /* bytes of a word whose rest is still to come, at the block's start */
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

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to convert with");
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
    return found.status; /* bytes that do not decode have said so */
}

static enum zt_status start_digest(struct zt_conversion_reader *reader, struct zt_source *file,
                                   struct zt_error *error)
{
    struct zt_error ignored;

    if (reader->conversion->trusted || reader->from->digest == NULL ||
        zt_component_digest(reader->conversion->source, reader->from, &reader->stated, &ignored) !=
            ZT_OK)
        return ZT_OK;
    if (!zt_digest_is_of_decoded(reader->conversion->source, reader->from))
        return check_ahead(reader, file, error);
    return zt_hasher_new(reader->stated.algorithm, &reader->hasher) == ZT_OK ? ZT_OK
                                                                             : no_memory(error);
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

/* --- integers --- */

/* False when it is negative. */
static bool change_word(const struct zt_conversion_reader *reader, const uint8_t *from, uint8_t *to)
{
    if (reader->is_signed && (from[reader->from_width - 1] & 0x80) != 0)
        return false;
    memset(to, 0, reader->to_width);
    memcpy(to, from, reader->from_width < reader->to_width ? reader->from_width : reader->to_width);
    return true;
}

/* The block holds length bytes, of which the last may be part of a word. */
static enum zt_status change_block(struct zt_conversion_reader *reader, size_t length,
                                   size_t *out_length, struct zt_error *error)
{
    size_t words = length / reader->from_width;

    for (size_t i = 0; i < words; i++)
        if (!change_word(reader, reader->block + i * reader->from_width,
                         reader->changed + i * reader->to_width))
            return zt_fail(error, ZT_INVALID, NULL, reader->from->offset, "a negative index");
    reader->kept = length - words * reader->from_width;
    memmove(reader->block, reader->block + words * reader->from_width, reader->kept);
    *out_length = words * reader->to_width;
    return ZT_OK;
}

static void start_change(struct zt_conversion_reader *reader, uint32_t component)
{
    const struct zt_projection *projection = reader->conversion->projection;
    enum zt_dtype from = (enum zt_dtype)reader->from->dtype;

    reader->changes = projection->origins[component].change == ZT_CHANGE_INDEX;
    reader->from_width = zt_dtype_width(from);
    reader->to_width =
        zt_dtype_width((enum zt_dtype)projection->model->components[component].dtype);
    reader->is_signed = from >= ZT_I64 && from <= ZT_I8;
}

/* --- opening and reading --- */

/* The smallest block that serves: models of a million small components are converted too. */
static enum zt_status make_blocks(struct zt_conversion_reader *reader, struct zt_error *error)
{
    uint64_t length = reader->from->decoded_length;

    reader->block_size = length < BLOCK_BYTES ? (size_t)length + WORD_MAX : BLOCK_BYTES;
    reader->block = malloc(reader->block_size);
    if (reader->changes)
        reader->changed = malloc(reader->block_size * GROWTH_MAX);
    return reader->block != NULL && (reader->changed != NULL || !reader->changes)
               ? ZT_OK
               : no_memory(error);
}

static enum zt_status open_decoder(struct zt_conversion_reader *reader, struct zt_error *error)
{
    struct zt_source *file = reader->conversion->files[reader->from->shard];
    enum zt_status status;

    if (file == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the file that holds its data is not there");
    reader->here = *reader->from;
    reader->here.shard = 0;
    status = make_blocks(reader, error);
    if (status == ZT_OK)
        status = start_digest(reader, file, error);
    return status == ZT_OK ? zt_decoder_open(&reader->here, file, &reader->decoder, error) : status;
}

enum zt_status zt_conversion_reader_open(const struct zt_conversion *conversion, uint32_t component,
                                         struct zt_conversion_reader **out_feed,
                                         struct zt_error *error)
{
    struct zt_conversion_reader *reader = calloc(1, sizeof(*reader));
    enum zt_status status;

    if (reader == NULL)
        return no_memory(error);
    reader->conversion = conversion;
    reader->from =
        &conversion->source->components[conversion->projection->origins[component].component];
    start_change(reader, component);
    status = open_decoder(reader, error);
    if (status != ZT_OK) {
        name_failure(reader, status, error);
        zt_conversion_reader_close(reader);
        return status;
    }
    *out_feed = reader;
    return ZT_OK;
}

static enum zt_status end(struct zt_conversion_reader *reader, struct zt_error *error)
{
    if (reader->kept > 0)
        return zt_fail(error, ZT_CORRUPT, NULL, reader->from->offset,
                       "the data ends inside a word");
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
        return end(reader, error);
    }
    if (reader->hasher != NULL)
        zt_hasher_update(reader->hasher, reader->block + reader->kept, length);
    status = advance(reader, length, error);
    *out_length = length + reader->kept;
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
        if (reader->changes)
            status = change_block(reader, length, &length, error);
        /* Less than a word: there is more to come before anything can be given. */
    } while (status == ZT_OK && length == 0);
    if (status != ZT_OK)
        return name_failure(reader, status, error);
    *out_bytes = reader->changes ? reader->changed : reader->block;
    *out_length = length;
    return ZT_OK;
}

void zt_conversion_reader_close(struct zt_conversion_reader *reader)
{
    if (reader == NULL)
        return;
    zt_decoder_close(reader->decoder);
    if (reader->hasher != NULL)
        zt_hasher_free(reader->hasher);
    free(reader->block);
    free(reader->changed);
    free(reader);
}
