/* A walk over the strings of the document: a key is a string with a colon behind it. */
#include "config/position.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

struct walk {
    const char *text;
    size_t length;
    size_t at;
    unsigned line;
    unsigned depth;
    bool in_group; /* the last key of the top level is the wanted group */
};

/* Moves from the quote at the beginning of a string to behind the one at its end. */
static void skip_string(struct walk *walk)
{
    walk->at++;
    while (walk->at < walk->length && walk->text[walk->at] != '"')
        walk->at += walk->text[walk->at] == '\\' ? 2 : 1;
    walk->at++;
}

static bool is_key(const struct walk *walk)
{
    size_t at = walk->at;

    while (at < walk->length && strchr(" \t\r\n", walk->text[at]) != NULL)
        at++;
    return at < walk->length && walk->text[at] == ':';
}

static bool equals(const char *text, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(text, name, length) == 0;
}

/* Takes a string; true if it is the wanted key. */
static bool take_string(struct walk *walk, const char *group, const char *name)
{
    const char *text = walk->text + walk->at + 1;
    size_t length;

    assert(walk->at < walk->length && text[-1] == '"');
    skip_string(walk);
    if (walk->at > walk->length || !is_key(walk))
        return false;
    length = (size_t)(walk->text + walk->at - 1 - text);
    if (walk->depth == 1)
        walk->in_group = group != NULL && equals(text, length, group);
    return walk->depth == (group != NULL ? 2 : 1) && (group == NULL || walk->in_group) &&
           equals(text, length, name);
}

unsigned config_line_of(const char *text, size_t length, const char *group, const char *name)
{
    struct walk walk = {.text = text, .length = length, .line = 1};

    while (walk.at < length) {
        const char byte = text[walk.at];

        if (byte == '"') {
            if (take_string(&walk, group, name))
                return walk.line;
            continue;
        }
        walk.line += byte == '\n';
        walk.depth += byte == '{' || byte == '[';
        walk.depth -= (byte == '}' || byte == ']') && walk.depth > 0;
        walk.at++;
    }
    return 0;
}
