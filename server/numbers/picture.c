/* Encodes pictures. Only one form of PNG is written, which takes four chunks and zlib; a library
 * for all of its forms would be another thing to keep up to date. */
#include "numbers/picture.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Colours of a map; the last entry of the palette is for what is not a number. */
#define COLOURS       255
#define CHANNELS      3
#define LEVEL         6
#define CHUNK_EXTRA   12 /* length, name and CRC (section 5.3) */
#define HEADER_LENGTH 13 /* section 11.2.1 */
#define BIT_DEPTH     8
#define INDEXED       3

static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

/* --- colours --- */

/* Colours at equal distances; what is between two is mixed. */
static const uint8_t viridis[][CHANNELS] = {
    {0x44, 0x01, 0x54}, {0x48, 0x28, 0x78}, {0x3E, 0x49, 0x89}, {0x31, 0x68, 0x8E},
    {0x26, 0x82, 0x8E}, {0x1F, 0x9E, 0x89}, {0x35, 0xB7, 0x79}, {0x6E, 0xCE, 0x58},
    {0xB5, 0xDE, 0x2B}, {0xFD, 0xE7, 0x25},
};
static const uint8_t gray[][CHANNELS] = {{0, 0, 0}, {0xFF, 0xFF, 0xFF}};
/* Blue for what is below zero, red for what is above. */
static const uint8_t diverging[][CHANNELS] = {
    {0x05, 0x30, 0x61}, {0x21, 0x66, 0xAC}, {0x43, 0x93, 0xC3}, {0x92, 0xC5, 0xDE},
    {0xD1, 0xE5, 0xF0}, {0xF7, 0xF7, 0xF7}, {0xFD, 0xDB, 0xC7}, {0xF4, 0xA5, 0x82},
    {0xD6, 0x60, 0x4D}, {0xB2, 0x18, 0x2B}, {0x67, 0x00, 0x1F},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void mix(const uint8_t (*stops)[CHANNELS], size_t stop_count, uint8_t *out_palette)
{
    const size_t spans = stop_count - 1;

    for (size_t i = 0; i < COLOURS; i++) {
        const size_t at = i * spans / (COLOURS - 1);
        const size_t from = at < spans ? at : spans - 1;
        const size_t share = i * spans - from * (COLOURS - 1);

        for (size_t channel = 0; channel < CHANNELS; channel++) {
            const size_t a = stops[from][channel];
            const size_t b = stops[from + 1][channel];

            out_palette[i * CHANNELS + channel] =
                (uint8_t)((a * (COLOURS - 1 - share) + b * share + (COLOURS - 1) / 2) /
                          (COLOURS - 1));
        }
    }
    memset(out_palette + (size_t)COLOURS * CHANNELS, 0, CHANNELS);
}

static void make_palette(enum picture_map map, uint8_t *out_palette)
{
    switch (map) {
    case PICTURE_VIRIDIS:
        mix(viridis, COUNT(viridis), out_palette);
        break;
    case PICTURE_GRAY:
        mix(gray, COUNT(gray), out_palette);
        break;
    case PICTURE_DIVERGING:
        mix(diverging, COUNT(diverging), out_palette);
        break;
    }
}

static uint8_t colour_of(const struct picture *picture, double cell)
{
    /* Halves, since the range of doubles does not fit in one. */
    const double range = picture->high / 2 - picture->low / 2;
    double place;

    if (isnan(cell))
        return COLOURS;
    if (cell < picture->low)
        place = 0;
    else if (cell > picture->high)
        place = 1;
    else
        place = range > 0 ? (cell / 2 - picture->low / 2) / range : 0.5;
    return (uint8_t)(place * (COLOURS - 1) + 0.5);
}

bool picture_range(const double *cells, size_t count, double *out_low, double *out_high)
{
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        if (!isfinite(cells[i]))
            continue;
        *out_low = !found || cells[i] < *out_low ? cells[i] : *out_low;
        *out_high = !found || cells[i] > *out_high ? cells[i] : *out_high;
        found = true;
    }
    return found;
}

/* --- chunks --- */

static uint8_t *put_word(uint8_t *at, uint32_t word)
{
    for (unsigned i = 0; i < sizeof(word); i++)
        at[i] = (uint8_t)(word >> (24 - 8 * i));
    return at + sizeof(word);
}

/* content may already stand behind the chunk's name. */
static uint8_t *put_chunk(uint8_t *at, const char *name, const uint8_t *content, size_t length)
{
    uint8_t *named = put_word(at, (uint32_t)length);

    memcpy(named, name, 4);
    if (length > 0)
        memmove(named + 4, content, length);
    return put_word(named + 4 + length, (uint32_t)crc32(0, named, (uInt)(4 + length)));
}

static uint8_t *put_head(uint8_t *at, const struct picture *picture)
{
    uint8_t header[HEADER_LENGTH] = {0};
    uint8_t palette[(COLOURS + 1) * CHANNELS];
    uint8_t opacity[COLOURS + 1];

    memcpy(at, signature, sizeof(signature));
    put_word(put_word(header, picture->cols), picture->rows);
    header[8] = BIT_DEPTH;
    header[9] = INDEXED;
    at = put_chunk(at + sizeof(signature), "IHDR", header, sizeof(header));
    make_palette(picture->map, palette);
    at = put_chunk(at, "PLTE", palette, sizeof(palette));
    memset(opacity, 0xFF, COLOURS);
    opacity[COLOURS] = 0;
    return put_chunk(at, "tRNS", opacity, sizeof(opacity));
}

/* Rows of indices, each after its filter, which is none (section 9.2). NULL if out of memory. */
static uint8_t *make_scanlines(const struct picture *picture)
{
    const size_t line = (size_t)picture->cols + 1;
    uint8_t *lines = malloc(picture->rows * line);

    if (lines == NULL)
        return NULL;
    for (uint32_t row = 0; row < picture->rows; row++) {
        const double *cells = picture->cells + (size_t)row * picture->cols;

        lines[row * line] = 0;
        for (uint32_t col = 0; col < picture->cols; col++)
            lines[row * line + 1 + col] = colour_of(picture, cells[col]);
    }
    return lines;
}

enum zt_status picture_encode(const struct picture *picture, uint8_t **out_bytes,
                              size_t *out_length, struct zt_error *error)
{
    const size_t line_bytes = picture->rows * ((size_t)picture->cols + 1);
    const size_t head_bytes = sizeof(signature) + HEADER_LENGTH + (COLOURS + 1) * (CHANNELS + 1) +
                              (size_t)5 * CHUNK_EXTRA;
    uLongf packed = compressBound(line_bytes);
    uint8_t *lines = make_scanlines(picture);
    uint8_t *bytes = lines != NULL ? malloc(head_bytes + packed) : NULL;
    uint8_t *at;

    assert(picture->rows > 0 && picture->cols > 0);
    if (bytes == NULL) {
        free(lines);
        return zt_fail_memory(error, "a picture");
    }
    at = put_head(bytes, picture);
    if (compress2(at + 8, &packed, lines, line_bytes, LEVEL) != Z_OK) {
        free(lines);
        free(bytes);
        return zt_fail_memory(error, "a picture");
    }
    free(lines);
    at = put_chunk(at, "IDAT", at + 8, packed);
    at = put_chunk(at, "IEND", NULL, 0);
    *out_bytes = bytes;
    *out_length = (size_t)(at - bytes);
    assert(*out_length <= head_bytes + compressBound(line_bytes));
    return ZT_OK;
}
