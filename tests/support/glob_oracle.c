/* Matching without tables and without the server's UTF-8 decoder. Only the last '*' is ever
 * retried, because it can take whatever an earlier one could. */
#include "glob_oracle.h"

#include <stddef.h>
#include <stdint.h>

#include "zt/utf8.h"

/* The bytes of a character in UTF-8. */
#define CHARACTER_MAX 4

/* A position in a text. */
struct place {
    const char *bytes;
    size_t length;
    size_t at;
};

static bool at_end(const struct place *place)
{
    return place->at == place->length;
}

/* Takes one character, as a number that orders as code points do. A byte that belongs to no
 * character counts as one. */
static uint32_t take(struct place *place)
{
    const uint8_t *bytes = (const uint8_t *)place->bytes + place->at;
    size_t left = place->length - place->at;
    size_t size = 1;
    uint32_t character = 0;

    while (size <= CHARACTER_MAX && size <= left && !zt_utf8_valid((const char *)bytes, size))
        size++;
    size = size <= CHARACTER_MAX && size <= left ? size : 1;
    for (size_t i = 0; i < size; i++)
        character = character << 8 | bytes[i];
    place->at += size;
    return character;
}

static bool take_if(struct place *place, char wanted)
{
    if (at_end(place) || place->bytes[place->at] != wanted)
        return false;
    place->at++;
    return true;
}

/* Also moves past the class. */
static bool class_has(struct place *glob, uint32_t character)
{
    bool negated = take_if(glob, '!') || take_if(glob, '^');
    bool found = false;

    for (bool first = true; first || !take_if(glob, ']'); first = false) {
        uint32_t low = take(glob);
        uint32_t high = low;

        if (glob->bytes[glob->at] == '-' && glob->bytes[glob->at + 1] != ']') {
            glob->at++;
            high = take(glob);
        }
        found = found || (low <= character && character <= high);
    }
    return found != negated;
}

static bool match_one(struct place *glob, struct place *text)
{
    uint32_t wanted;
    uint32_t character;

    if (at_end(glob))
        return false;
    wanted = take(glob);
    character = take(text);
    if (wanted == '[')
        return class_has(glob, character);
    return wanted == '?' || wanted == character;
}

bool glob_oracle_matches(struct zt_text glob_text, struct zt_text name)
{
    struct place glob = {glob_text.bytes, glob_text.length, 0};
    struct place text = {name.bytes, name.length, 0};
    bool has_star = false;
    struct place glob_behind_star = glob;
    struct place text_at_star = text;

    while (!at_end(&text)) {
        if (take_if(&glob, '*')) {
            has_star = true;
            glob_behind_star = glob;
            text_at_star = text;
        } else if (!match_one(&glob, &text)) {
            if (!has_star)
                return false;
            /* Lets the last '*' take one more character. */
            take(&text_at_star);
            glob = glob_behind_star;
            text = text_at_star;
        }
    }
    while (take_if(&glob, '*')) {
    }
    return at_end(&glob);
}
