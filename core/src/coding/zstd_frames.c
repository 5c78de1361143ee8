/* Walking zstd frames by their headers (RFC 8878 section 3.1), without decoding them, to find which
 * windows they need and whether they are complete. */
#include "zt/coding.h"

#include <assert.h>

#include "base/little_endian.h"

#define FRAME_MAGIC     0xFD2FB528u
#define SKIPPABLE_MAGIC 0x184D2A50u
#define SKIPPABLE_MASK  0xFFFFFFF0u
/* RFC 9659. */
#define WINDOW_MAX ((uint64_t)8 << 20)
/* Magic number, descriptor, window, dictionary's identity, content size. */
#define HEADER_MAX   18
#define BLOCK_HEADER 3
/* A page: one read covers many small blocks, and little more than the header of a large one. */
#define BUFFER_BYTES 4096

enum block_type { BLOCK_RAW, BLOCK_RLE, BLOCK_COMPRESSED, BLOCK_RESERVED };

/* A walk only moves forward. fit becomes false at the first violation. */
struct walk {
    struct zt_source *source;
    uint64_t at; /* absolute */
    uint64_t end;
    uint64_t buffer_at;
    size_t buffered;
    uint64_t stated; /* sum of the content sizes that frames state; saturates */
    bool all_stated;
    bool fit;
    uint64_t largest; /* largest window so far */
    uint8_t buffer[BUFFER_BYTES];
};

static uint64_t left(const struct walk *walk)
{
    assert(walk->at <= walk->end);
    return walk->end - walk->at;
}

/* Returns the next length bytes without moving. length is at most HEADER_MAX and at most the bytes
 * left. */
static enum zt_status peek(struct walk *walk, size_t length, const uint8_t **out_bytes,
                           struct zt_error *error)
{
    uint64_t behind = walk->at - walk->buffer_at;

    assert(length <= HEADER_MAX && length <= left(walk));
    if (behind > walk->buffered || walk->buffered - behind < length) {
        size_t part = left(walk) < sizeof(walk->buffer) ? (size_t)left(walk) : sizeof(walk->buffer);
        enum zt_status status =
            zt_source_read_at(walk->source, walk->at, walk->buffer, part, error);

        if (status != ZT_OK)
            return status;
        walk->buffer_at = walk->at;
        walk->buffered = part;
        behind = 0;
    }
    *out_bytes = walk->buffer + behind;
    return ZT_OK;
}

static void skip(struct walk *walk, uint64_t length)
{
    if (length > left(walk))
        walk->fit = false;
    else
        walk->at += length;
}

static uint64_t little_endian(const uint8_t *bytes, unsigned length)
{
    uint64_t value = 0;

    assert(length <= sizeof(value));
    for (unsigned i = length; i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}

/* The window size that a descriptor states (section 3.1.1.1.2). Single-segment frames have no
 * descriptor. */
static uint64_t window_of(uint8_t descriptor)
{
    uint64_t base = UINT64_C(1) << (10 + (descriptor >> 3));

    return base + base / 8 * (descriptor & 7);
}

static void add_stated(struct walk *walk, uint64_t length)
{
    walk->stated = length > UINT64_MAX - walk->stated ? UINT64_MAX : walk->stated + length;
}

/* The length of the header after the magic number; 0 if it is truncated or if not every decoder
 * supports it because of reserved bits, a dictionary or a large window. */
static size_t read_header(struct walk *walk, const uint8_t *header, size_t held)
{
    static const uint8_t dictionary_bytes[] = {0, 1, 2, 4};
    static const uint8_t content_bytes[] = {0, 2, 4, 8};
    const uint8_t descriptor = header[0];
    const bool single = (descriptor & 0x20) != 0;
    const unsigned dictionary = dictionary_bytes[descriptor & 3];
    const unsigned size_flag = descriptor >> 6;
    const unsigned content = size_flag == 0 && single ? 1 : content_bytes[size_flag];
    const size_t length = 1 + (single ? 0u : 1u) + dictionary + content;
    uint64_t window, holds;

    assert(held > 0);
    if (length > held || (descriptor & 0x08) != 0)
        return 0;
    if (little_endian(header + 1 + (single ? 0 : 1), dictionary) != 0)
        return 0;
    holds = little_endian(header + length - content, content) + (content == 2 ? 256 : 0);
    add_stated(walk, holds);
    walk->all_stated = walk->all_stated && content > 0;
    window = single ? holds : window_of(header[1]);
    walk->largest = window > walk->largest ? window : walk->largest;
    return window <= WINDOW_MAX ? length : 0;
}

static enum zt_status walk_blocks(struct walk *walk, struct zt_error *error)
{
    bool last = false;

    while (walk->fit && !last) {
        const uint8_t *bytes;
        enum zt_status status;
        uint32_t header, size, type;

        if (left(walk) < BLOCK_HEADER) {
            walk->fit = false;
            break;
        }
        status = peek(walk, BLOCK_HEADER, &bytes, error);
        if (status != ZT_OK)
            return status;
        header = (uint32_t)little_endian(bytes, BLOCK_HEADER);
        last = (header & 1) != 0;
        type = header >> 1 & 3;
        size = header >> 3;
        if (type == BLOCK_RESERVED)
            walk->fit = false;
        skip(walk, BLOCK_HEADER + (uint64_t)(type == BLOCK_RLE ? 1 : size));
    }
    return ZT_OK;
}

static enum zt_status walk_frame(struct walk *walk, const uint8_t *start, size_t held,
                                 struct zt_error *error)
{
    const bool checksum = (start[4] & 0x04) != 0;
    const size_t length = read_header(walk, start + 4, held - 4);
    enum zt_status status;

    walk->fit = length > 0;
    if (!walk->fit)
        return ZT_OK;
    skip(walk, 4 + length);
    status = walk_blocks(walk, error);
    if (status == ZT_OK && walk->fit && checksum)
        skip(walk, 4);
    return status;
}

static enum zt_status walk_any(struct walk *walk, struct zt_error *error)
{
    size_t held = left(walk) < HEADER_MAX ? (size_t)left(walk) : HEADER_MAX;
    const uint8_t *start;
    enum zt_status status;
    uint64_t magic;

    /* The magic number is followed by a descriptor or, in a skippable frame, by a length. */
    walk->fit = held > 4;
    if (!walk->fit)
        return ZT_OK;
    status = peek(walk, held, &start, error);
    if (status != ZT_OK)
        return status;
    magic = zt_load_le32(start);
    if (magic == FRAME_MAGIC)
        return walk_frame(walk, start, held, error);
    walk->fit = (magic & SKIPPABLE_MASK) == SKIPPABLE_MAGIC && held >= 8;
    if (walk->fit)
        skip(walk, 8 + (uint64_t)zt_load_le32(start + 4));
    return ZT_OK;
}

static bool may_hold(const struct walk *walk, uint64_t decoded_length)
{
    if (decoded_length == ZT_LENGTH_UNKNOWN)
        return true;
    return walk->all_stated ? walk->stated == decoded_length : walk->stated <= decoded_length;
}

static enum zt_status walk_all(struct zt_source *source, const struct zt_component *stored,
                               struct walk *out_walk, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    *out_walk = (struct walk){.source = source,
                              .at = stored->offset,
                              .end = stored->offset + stored->length,
                              .buffer_at = stored->offset,
                              .all_stated = true,
                              .fit = stored->length > 0};
    while (status == ZT_OK && out_walk->fit && out_walk->at < out_walk->end)
        status = walk_any(out_walk, error);
    return status;
}

enum zt_status zt_zstd_windows_fit(struct zt_source *source, const struct zt_component *stored,
                                   bool *out_fit, struct zt_error *error)
{
    struct walk walk;
    enum zt_status status = walk_all(source, stored, &walk, error);

    if (status == ZT_OK)
        *out_fit = walk.largest <= WINDOW_MAX;
    return status;
}

enum zt_status zt_zstd_fits_all(struct zt_source *source, const struct zt_component *stored,
                                bool *out_fit, struct zt_error *error)
{
    struct walk walk;
    enum zt_status status = walk_all(source, stored, &walk, error);

    if (status == ZT_OK)
        *out_fit = walk.fit && may_hold(&walk, stored->decoded_length);
    return status;
}
