/* A walk over the block, text by text (RFC 9112 sections 2.2, 3 and 5). */
#include "http/fields/header_block.h"

#include <string.h>

struct walk {
    const struct header_block *block;
    size_t at;
};

static bool take_byte(struct walk *walk, char byte)
{
    if (walk->at >= walk->block->length || walk->block->bytes[walk->at] != byte)
        return false;
    walk->at++;
    return true;
}

/* CR LF, both overwritten. */
static bool take_line_end(struct walk *walk)
{
    static const char end[2];

    if (walk->block->length - walk->at < sizeof(end) ||
        memcmp(walk->block->bytes + walk->at, end, sizeof(end)) != 0)
        return false;
    walk->at += sizeof(end);
    return true;
}

static bool take_text(struct walk *walk, const char *text, size_t length)
{
    if (text != walk->block->bytes + walk->at || length > walk->block->length - walk->at)
        return false;
    walk->at += length;
    return true;
}

static bool take_request_line(struct walk *walk)
{
    const struct header_block *block = walk->block;

    walk->at = strnlen(block->bytes, block->length);
    if (!take_byte(walk, '\0') || block->target_length > block->length - walk->at)
        return false;
    walk->at += block->target_length;
    return take_byte(walk, '\0') && take_text(walk, block->version, strlen(block->version)) &&
           take_line_end(walk);
}

static bool take_field(struct walk *walk, const struct header_field *field)
{
    if (!take_text(walk, field->name, field->name_length) || !take_byte(walk, '\0'))
        return false;
    while (take_byte(walk, ' ') || take_byte(walk, '\t'))
        ;
    return take_text(walk, field->value, field->value_length) && take_line_end(walk);
}

bool header_block_is_plain(const struct header_block *block, const struct header_field *fields,
                           unsigned count)
{
    struct walk walk = {block, 0};

    if (!take_request_line(&walk))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!take_field(&walk, &fields[i]))
            return false;
    return take_line_end(&walk) && walk.at == block->length;
}
