/* Feeding a component: decoder, digest and change of integers, one block at a time. */
#include "write/feed.h"

#include <stdlib.h>
#include <string.h>

#include "model/extents.h"

#define BLOCK_BYTES ((size_t)256 << 10)
/* Integers become eight times as wide at most. */
#define GROWTH_MAX 8
#define WORD_MAX   8

struct zt_feed {
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

static enum zt_status name_failure(const struct zt_feed *feed, enum zt_status status,
                                   struct zt_error *error)
{
    const struct zt_model *source = feed->conversion->source;

    if (status != ZT_OK)
        zt_error_at(error, zt_object_name(zt_component_owner(source, feed->from)),
                    zt_component_name(feed->from));
    return status;
}

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to convert with");
}

static enum zt_status wrong_digest(const struct zt_feed *feed, const char *actual,
                                   const char *stated, struct zt_error *error)
{
    return zt_fail(error, ZT_CORRUPT, NULL, feed->from->offset,
                   "digest is %.100s, the file states %.100s", actual, stated);
}

/* --- digests --- */

bool zt_feed_digest_is_decoded(const struct zt_model *source, const struct zt_component *component)
{
    return !zt_digest_covers_stored(source) ||
           (zt_component_is_plain(component) && component->arrangement == NULL);
}

static enum zt_status check_ahead(const struct zt_feed *feed, struct zt_source *file,
                                  struct zt_error *error)
{
    struct zt_component_check check;
    struct zt_error found;
    enum zt_status status;

    zt_error_clear(&found);
    status = zt_component_check(feed->conversion->source, &feed->here, file, NULL, &check, &found);
    if (status == ZT_OK && check.verdict != ZT_VERDICT_FAILED)
        return ZT_OK;
    if (status == ZT_OK && found.status == ZT_OK)
        return wrong_digest(feed, check.actual, check.expected, error);
    if (error != NULL)
        *error = found;
    return found.status; /* bytes that do not decode have said so */
}

static enum zt_status start_digest(struct zt_feed *feed, struct zt_source *file,
                                   struct zt_error *error)
{
    struct zt_error ignored;

    if (feed->conversion->trusted || feed->from->digest == NULL ||
        zt_component_digest(feed->conversion->source, feed->from, &feed->stated, &ignored) != ZT_OK)
        return ZT_OK;
    if (!zt_feed_digest_is_decoded(feed->conversion->source, feed->from))
        return check_ahead(feed, file, error);
    return zt_hasher_new(feed->stated.algorithm, &feed->hasher) == ZT_OK ? ZT_OK : no_memory(error);
}

static enum zt_status compare_digest(struct zt_feed *feed, struct zt_error *error)
{
    struct zt_digest actual;
    char actual_text[ZT_DIGEST_TEXT_SIZE];
    char stated_text[ZT_DIGEST_TEXT_SIZE];

    if (feed->hasher == NULL)
        return ZT_OK;
    zt_hasher_finish(feed->hasher, &actual);
    zt_hasher_free(feed->hasher);
    feed->hasher = NULL;
    if (zt_digest_equal(&actual, &feed->stated))
        return ZT_OK;
    zt_digest_format(&actual, actual_text);
    zt_digest_format(&feed->stated, stated_text);
    return wrong_digest(feed, actual_text, stated_text, error);
}

/* --- integers --- */

/* False when it is negative. */
static bool change_word(const struct zt_feed *feed, const uint8_t *from, uint8_t *to)
{
    if (feed->is_signed && (from[feed->from_width - 1] & 0x80) != 0)
        return false;
    memset(to, 0, feed->to_width);
    memcpy(to, from, feed->from_width < feed->to_width ? feed->from_width : feed->to_width);
    return true;
}

/* The block holds length bytes, of which the last may be part of a word. */
static enum zt_status change_block(struct zt_feed *feed, size_t length, size_t *out_length,
                                   struct zt_error *error)
{
    size_t words = length / feed->from_width;

    for (size_t i = 0; i < words; i++)
        if (!change_word(feed, feed->block + i * feed->from_width,
                         feed->changed + i * feed->to_width))
            return zt_fail(error, ZT_INVALID, NULL, feed->from->offset, "a negative index");
    feed->kept = length - words * feed->from_width;
    memmove(feed->block, feed->block + words * feed->from_width, feed->kept);
    *out_length = words * feed->to_width;
    return ZT_OK;
}

static void start_change(struct zt_feed *feed, uint32_t component)
{
    const struct zt_projection *projection = feed->conversion->projection;
    enum zt_dtype from = (enum zt_dtype)feed->from->dtype;

    feed->changes = projection->origins[component].change == ZT_CHANGE_INDEX;
    feed->from_width = zt_dtype_width(from);
    feed->to_width = zt_dtype_width((enum zt_dtype)projection->model->components[component].dtype);
    feed->is_signed = from >= ZT_I64 && from <= ZT_I8;
}

/* --- opening and reading --- */

/* The smallest block that serves: models of a million small components are converted too. */
static enum zt_status make_blocks(struct zt_feed *feed, struct zt_error *error)
{
    uint64_t length = feed->from->decoded_length;

    feed->block_size = length < BLOCK_BYTES ? (size_t)length + WORD_MAX : BLOCK_BYTES;
    feed->block = malloc(feed->block_size);
    if (feed->changes)
        feed->changed = malloc(feed->block_size * GROWTH_MAX);
    return feed->block != NULL && (feed->changed != NULL || !feed->changes) ? ZT_OK
                                                                            : no_memory(error);
}

static enum zt_status open_decoder(struct zt_feed *feed, struct zt_error *error)
{
    struct zt_source *file = feed->conversion->files[feed->from->shard];
    enum zt_status status;

    if (file == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the file that holds its data is not there");
    feed->here = *feed->from;
    feed->here.shard = 0;
    status = make_blocks(feed, error);
    if (status == ZT_OK)
        status = start_digest(feed, file, error);
    return status == ZT_OK ? zt_decoder_open(&feed->here, file, &feed->decoder, error) : status;
}

enum zt_status zt_feed_open(const struct zt_conversion *conversion, uint32_t component,
                            struct zt_feed **out_feed, struct zt_error *error)
{
    struct zt_feed *feed = calloc(1, sizeof(*feed));
    enum zt_status status;

    if (feed == NULL)
        return no_memory(error);
    feed->conversion = conversion;
    feed->from =
        &conversion->source->components[conversion->projection->origins[component].component];
    start_change(feed, component);
    status = open_decoder(feed, error);
    if (status != ZT_OK) {
        name_failure(feed, status, error);
        zt_feed_close(feed);
        return status;
    }
    *out_feed = feed;
    return ZT_OK;
}

static enum zt_status end(struct zt_feed *feed, struct zt_error *error)
{
    if (feed->kept > 0)
        return zt_fail(error, ZT_CORRUPT, NULL, feed->from->offset, "the data ends inside a word");
    return compare_digest(feed, error);
}

static enum zt_status advance(const struct zt_feed *feed, size_t length, struct zt_error *error)
{
    const struct zt_progress *progress = feed->conversion->progress;

    if (progress == NULL || progress->advance(progress->context, length))
        return ZT_OK;
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "stopped");
}

static enum zt_status read_block(struct zt_feed *feed, size_t *out_length, struct zt_error *error)
{
    size_t length = 0;
    enum zt_status status = zt_decoder_read(feed->decoder, feed->block + feed->kept,
                                            feed->block_size - feed->kept, &length, error);

    if (status != ZT_OK)
        return status;
    if (length == 0) {
        *out_length = 0;
        return end(feed, error);
    }
    if (feed->hasher != NULL)
        zt_hasher_update(feed->hasher, feed->block + feed->kept, length);
    status = advance(feed, length, error);
    *out_length = length + feed->kept;
    return status;
}

enum zt_status zt_feed_read(struct zt_feed *feed, const uint8_t **out_bytes, size_t *out_length,
                            struct zt_error *error)
{
    size_t length = 0;
    enum zt_status status;

    do {
        status = read_block(feed, &length, error);
        if (status != ZT_OK || length == 0)
            break;
        if (feed->changes)
            status = change_block(feed, length, &length, error);
        /* Less than a word: there is more to come before anything can be given. */
    } while (status == ZT_OK && length == 0);
    if (status != ZT_OK)
        return name_failure(feed, status, error);
    *out_bytes = feed->changes ? feed->changed : feed->block;
    *out_length = length;
    return ZT_OK;
}

void zt_feed_close(struct zt_feed *feed)
{
    if (feed == NULL)
        return;
    zt_decoder_close(feed->decoder);
    if (feed->hasher != NULL)
        zt_hasher_free(feed->hasher);
    free(feed->block);
    free(feed->changed);
    free(feed);
}
