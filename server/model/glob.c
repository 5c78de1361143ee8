/* Matching without recursion: only the last '*' is ever gone back to, because whatever an earlier one could take, the
 * last one can take too. The cost is at most the length of the glob times that of the text. */
#include "model/glob.h"

#include "http/utf8.h"

/* Where reading stands in a text. */
struct cursor {
    const char *bytes;
    size_t length;
    size_t at;
};

static struct cursor cursor_over(struct zt_text text)
{
    return (struct cursor){text.bytes, text.length, 0};
}

static bool at_end(const struct cursor *cursor)
{
    return cursor->at == cursor->length;
}

/* The next character as a number that orders as code points do. Bytes that are no character count as one each. */
static uint32_t take(struct cursor *cursor)
{
    size_t size = utf8_character(cursor->bytes + cursor->at, cursor->length - cursor->at);
    uint32_t character = 0;
    for (size_t i = 0; i < (size > 0 ? size : 1); i++) {
        character = character << 8 | (unsigned char)cursor->bytes[cursor->at++];
    }
    return character;
}

/* Takes the character only when it is the one asked for. */
static bool take_if(struct cursor *cursor, char wanted)
{
    if (at_end(cursor) || cursor->bytes[cursor->at] != wanted) {
        return false;
    }
    cursor->at++;
    return true;
}

/* Reads a class behind its '[': whether character is in it. *out_closed is false when the glob ends before ']'. A ']'
 * that comes first stands for itself, as does a '-' at either end. */
static bool class_has(struct cursor *glob, uint32_t character, bool *out_closed)
{
    bool negated = take_if(glob, '!') || take_if(glob, '^');
    bool found = false;
    for (bool first = true; !at_end(glob); first = false) {
        if (!first && take_if(glob, ']')) {
            *out_closed = true;
            return found != negated;
        }
        uint32_t low = take(glob);
        uint32_t high = low;
        bool is_range =
            glob->length - glob->at >= 2 && glob->bytes[glob->at] == '-' && glob->bytes[glob->at + 1] != ']';
        if (is_range) {
            glob->at++;
            high = take(glob);
        }
        found = found || (low <= character && character <= high);
    }
    *out_closed = false;
    return false;
}

bool glob_is_valid(struct zt_text glob)
{
    if (glob.length > GLOB_MAX || !utf8_is_valid(glob.bytes, glob.length)) {
        return false;
    }
    struct cursor cursor = cursor_over(glob);
    while (!at_end(&cursor)) {
        bool closed = true;
        if (take(&cursor) == '[') {
            class_has(&cursor, 0, &closed);
        }
        if (!closed) {
            return false;
        }
    }
    return true;
}

/* One step of the glob that is not '*' against one character of the text. */
static bool match_one(struct cursor *glob, struct cursor *text)
{
    if (at_end(glob)) {
        return false;
    }
    uint32_t wanted = take(glob);
    uint32_t character = take(text);
    if (wanted == '[') {
        bool closed;
        return class_has(glob, character, &closed);
    }
    return wanted == '?' || wanted == character;
}

bool glob_match(struct zt_text glob_text, struct zt_text name)
{
    struct cursor glob = cursor_over(glob_text);
    struct cursor text = cursor_over(name);
    bool has_star = false;
    struct cursor glob_behind_star = glob;
    struct cursor text_at_star = text;
    while (!at_end(&text)) {
        if (take_if(&glob, '*')) {
            has_star = true;
            glob_behind_star = glob;
            text_at_star = text;
        } else if (!match_one(&glob, &text)) {
            if (!has_star) {
                return false;
            }
            /* The last '*' takes one character more. */
            take(&text_at_star);
            glob = glob_behind_star;
            text = text_at_star;
        }
    }
    while (take_if(&glob, '*')) {
    }
    return at_end(&glob);
}
