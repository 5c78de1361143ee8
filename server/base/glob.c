/* Parses globs, and matches a set of them by simulating one bit-parallel automaton (Shift-And, by
 * Baeza-Yates and Gonnet). A glob with n elements other than stars has n + 1 bits, one for each
 * position between them. A character moves a bit to the next position if the element there accepts
 * it; at a star, the bit also stays.
 *
 * A row of bits says which elements accept a character. Each ASCII character has a row; the rest of
 * Unicode is split at the characters and range ends that the globs name, with a row for each
 * part. */
#include "base/glob.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "zt/utf8.h"

/* The first character of more than one byte. */
#define FIRST_LONG 0x80
#define WORD_BITS  64
/* Loops process blocks of this many words, so that compilers vectorize them. */
#define BLOCK_WORDS 4
/* Each byte of a glob is at most one bit, and each glob has one more for its end; a row is a
 * multiple of a block. */
#define WORDS_MAX                                                                                \
    ((GLOB_SET_BYTES_MAX + GLOB_SET_MAX + WORD_BITS * BLOCK_WORDS) / (WORD_BITS * BLOCK_WORDS) * \
     BLOCK_WORDS)

/* A position in a text. */
struct cursor {
    const char *bytes;
    size_t length;
    size_t at;
};

/* One element of a glob: a star, or something that accepts one character. */
struct element {
    bool is_star;
    bool is_negated;      /* accepts characters outside the ranges; "?" is negated without ranges */
    struct cursor ranges; /* for take_range */
};

struct glob_set {
    size_t words; /* length of a row: one, or a multiple of BLOCK_WORDS */
    uint32_t *
        borders; /* sorted: where the parts of Unicode above ASCII begin; the first at FIRST_LONG */
    size_t border_count;
    uint64_t *memory; /* one allocation for the members below */
    uint64_t *rows;
    uint64_t *begin;   /* starts of the globs */
    uint64_t *stay;    /* positions of stars */
    uint64_t *end;     /* ends of the globs */
    uint64_t *negated; /* positions whose row bit is inverted; for compiling */
};

/* --- parsing --- */

static struct cursor cursor_over(struct zt_text text)
{
    return (struct cursor){text.bytes, text.length, 0};
}

static bool at_end(const struct cursor *cursor)
{
    return cursor->at == cursor->length;
}

/* Returns the next character as a number that sorts like its code point. A byte outside a valid
 * character counts as one. */
static uint32_t take(struct cursor *cursor)
{
    size_t size = zt_utf8_character(cursor->bytes + cursor->at, cursor->length - cursor->at);
    uint32_t character = 0;

    for (size_t i = 0; i < (size > 0 ? size : 1); i++)
        character = character << 8 | (unsigned char)cursor->bytes[cursor->at++];
    return character;
}

/* Takes the next character if it is `wanted`. */
static bool take_if(struct cursor *cursor, char wanted)
{
    if (at_end(cursor) || cursor->bytes[cursor->at] != wanted)
        return false;
    cursor->at++;
    return true;
}

/* Takes one character of a class, or a range. A final '-' stands for itself. */
static void take_range(struct cursor *glob, uint32_t *out_low, uint32_t *out_high)
{
    *out_low = *out_high = take(glob);
    if (glob->length - glob->at >= 2 && glob->bytes[glob->at] == '-' &&
        glob->bytes[glob->at + 1] != ']') {
        glob->at++;
        *out_high = take(glob);
    }
}

/* Parses a class after its '['. A ']' that comes first stands for itself. Returns false if the
 * class is not closed. */
static bool take_class(struct cursor *glob, struct element *element)
{
    uint32_t low;
    uint32_t high;

    element->is_negated = take_if(glob, '!') || take_if(glob, '^');
    element->ranges = *glob;
    for (bool first = true; !at_end(glob); first = false) {
        element->ranges.length = glob->at;
        if (!first && take_if(glob, ']'))
            return true;
        take_range(glob, &low, &high);
    }
    return false;
}

/* Returns false for a class that is not closed. */
static bool take_element(struct cursor *glob, struct element *out_element)
{
    *out_element = (struct element){0};
    if (take_if(glob, '['))
        return take_class(glob, out_element);
    if (take_if(glob, '*')) {
        out_element->is_star = true;
    } else if (take_if(glob, '?')) {
        out_element->is_negated = true;
    } else {
        out_element->ranges = *glob;
        take(glob);
        out_element->ranges.length = glob->at;
    }
    return true;
}

bool glob_is_valid(struct zt_text glob)
{
    struct cursor cursor;
    struct element element;

    if (glob.length > GLOB_MAX || !zt_utf8_valid(glob.bytes, glob.length))
        return false;
    cursor = cursor_over(glob);
    while (!at_end(&cursor))
        if (!take_element(&cursor, &element))
            return false;
    return true;
}

/* --- compiling --- */

/* Counts the bits of a glob and appends the borders of its ranges; *count is the length of
 * borders. */
static size_t read_borders(struct zt_text glob, uint32_t *borders, size_t *count)
{
    struct cursor cursor = cursor_over(glob);
    struct element element;
    size_t bits = 1;

    while (!at_end(&cursor)) {
        take_element(&cursor, &element);
        bits += !element.is_star;
        while (!at_end(&element.ranges)) {
            uint32_t low;
            uint32_t high;

            take_range(&element.ranges, &low, &high);
            if (high >= FIRST_LONG && low <= high) {
                borders[(*count)++] = low > FIRST_LONG ? low : FIRST_LONG;
                borders[(*count)++] = high + 1;
            }
        }
    }
    return bits;
}

static int compare_borders(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

/* Finds the parts of Unicode that all globs treat equally, and the length of a row. Returns false
 * if out of memory. */
static bool make_borders(struct glob_set *set, const struct zt_text *globs, size_t count)
{
    size_t bytes = 0;
    size_t bits = 0;
    size_t found = 1;

    for (size_t i = 0; i < count; i++)
        bytes += globs[i].length;
    /* A character above ASCII has at least two bytes, and adds two borders. */
    set->borders = bytes <= GLOB_SET_BYTES_MAX ? calloc(bytes + 2, sizeof(*set->borders)) : NULL;
    if (set->borders == NULL)
        return false;
    set->borders[0] = FIRST_LONG;
    for (size_t i = 0; i < count; i++)
        bits += read_borders(globs[i], set->borders, &found);
    assert(found <= bytes + 2);
    qsort(set->borders, found, sizeof(*set->borders), compare_borders);
    for (size_t i = 0; i < found; i++)
        if (set->border_count == 0 || set->borders[i] != set->borders[set->border_count - 1])
            set->borders[set->border_count++] = set->borders[i];
    set->words = bits <= WORD_BITS ? 1
                                   : (bits + WORD_BITS * BLOCK_WORDS - 1) /
                                         (WORD_BITS * BLOCK_WORDS) * BLOCK_WORDS;
    return true;
}

/* The rows follow a zero word, because a step reads the word before the first. */
static bool make_rows(struct glob_set *set)
{
    size_t words = set->words;
    size_t rows = FIRST_LONG + set->border_count;

    set->memory = calloc((rows + 4) * words + 1, sizeof(*set->memory));
    if (set->memory == NULL)
        return false;
    set->rows = set->memory + 1;
    set->begin = set->rows + rows * words;
    set->stay = set->begin + words;
    set->end = set->stay + words;
    set->negated = set->end + words;
    return true;
}

/* Returns the row of a character. */
static size_t row_of(const struct glob_set *set, uint32_t character)
{
    size_t low;
    size_t high;

    if (character < FIRST_LONG)
        return character;
    assert(set->border_count > 0 && set->borders[0] == FIRST_LONG);
    low = 0;
    high = set->border_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (set->borders[middle] <= character)
            low = middle;
        else
            high = middle;
    }
    return FIRST_LONG + low;
}

static void set_bit(uint64_t *words, size_t bit)
{
    words[bit / WORD_BITS] |= UINT64_C(1) << bit % WORD_BITS;
}

static void compile_ranges(struct glob_set *set, struct cursor ranges, size_t bit)
{
    while (!at_end(&ranges)) {
        uint32_t low;
        uint32_t high;
        size_t last;

        take_range(&ranges, &low, &high);
        last = low <= high ? row_of(set, high) + 1 : 0;
        for (size_t row = row_of(set, low); row < last; row++)
            set_bit(set->rows + row * set->words, bit);
    }
}

/* Assigns bits to a glob, starting at bit; returns the first bit of the next glob. */
static size_t compile_glob(struct glob_set *set, struct zt_text glob, size_t bit)
{
    struct cursor cursor = cursor_over(glob);
    struct element element;

    set_bit(set->begin, bit);
    while (!at_end(&cursor)) {
        take_element(&cursor, &element);
        if (element.is_star) {
            set_bit(set->stay, bit);
            continue;
        }
        compile_ranges(set, element.ranges, bit);
        if (element.is_negated)
            set_bit(set->negated, bit);
        bit++;
    }
    set_bit(set->end, bit);
    return bit + 1;
}

static void compile(struct glob_set *set, const struct zt_text *globs, size_t count)
{
    const uint64_t *negated = set->negated;
    size_t bit = 0;

    for (size_t i = 0; i < count; i++)
        bit = compile_glob(set, globs[i], bit);
    assert(bit <= set->words * WORD_BITS);
    for (size_t row = 0; row < FIRST_LONG + set->border_count; row++)
        for (size_t i = 0; i < set->words; i++)
            set->rows[row * set->words + i] ^= negated[i];
}

struct glob_set *glob_set_new(const struct zt_text *globs, size_t count)
{
    struct glob_set *set = count <= GLOB_SET_MAX ? calloc(1, sizeof(*set)) : NULL;

    if (set == NULL || !make_borders(set, globs, count) || !make_rows(set)) {
        glob_set_free(set);
        return NULL;
    }
    compile(set, globs, count);
    return set;
}

void glob_set_free(struct glob_set *set)
{
    if (set == NULL)
        return;
    free(set->borders);
    free(set->memory);
    free(set);
}

/* --- matching --- */

static const uint64_t *take_row(const struct glob_set *set, struct cursor *text)
{
    unsigned char byte = (unsigned char)text->bytes[text->at];

    if (byte < FIRST_LONG) {
        text->at++;
        return set->rows + byte * set->words;
    }
    return set->rows + row_of(set, take(text)) * set->words;
}

/* Which positions count after a text: the end of a glob, any position, or an end with a star. */
enum wanted { WANTED_END, WANTED_ANY, WANTED_FINAL_STAR };

/* Returns the bits of one word that count. */
static uint64_t wanted_bits(const struct glob_set *set, size_t word, enum wanted wanted)
{
    switch (wanted) {
    case WANTED_END:
        return set->end[word];
    case WANTED_FINAL_STAR:
        return set->end[word] & set->stay[word];
    case WANTED_ANY:
        break;
    }
    return UINT64_MAX;
}

static bool matches_in_a_word(const struct glob_set *set, struct cursor text, enum wanted wanted)
{
    uint64_t stay = *set->stay;
    uint64_t ends_in_star = *set->end & stay;
    uint64_t now = *set->begin;

    while (!at_end(&text) && now != 0) {
        if (now & ends_in_star)
            return true;
        now = (now & *take_row(set, &text)) << 1 | (now & stay);
    }
    return (now & wanted_bits(set, 0, wanted)) != 0;
}

/* Moves the bits by one character. Returns false if none is left. The end of a glob accepts no
 * character, so no bit moves from one glob into the next. */
static bool step(const struct glob_set *set, const uint64_t *row, const uint64_t *restrict now,
                 uint64_t *restrict next)
{
    const uint64_t *stay = set->stay;
    /* The word before each one; the first word also has one. */
    const uint64_t *now_before = now - 1;
    const uint64_t *row_before = row - 1;
    uint64_t left = 0;

    for (size_t block = 0; block < set->words; block += BLOCK_WORDS) {
        for (size_t i = block; i < block + BLOCK_WORDS; i++) {
            next[i] = (now[i] & row[i]) << 1 | (now_before[i] & row_before[i]) >> (WORD_BITS - 1) |
                      (now[i] & stay[i]);
        }
        for (size_t i = block; i < block + BLOCK_WORDS; i++)
            left |= next[i];
    }
    return left != 0;
}

static bool matches_in_words(const struct glob_set *set, struct cursor text, enum wanted wanted)
{
    /* The positions before and after a character, each array after a zero word. */
    uint64_t first[WORDS_MAX + 1];
    uint64_t second[WORDS_MAX + 1];
    uint64_t *now = first + 1;
    uint64_t *next = second + 1;
    uint64_t matched = 0;

    assert(set->words <= WORDS_MAX);
    first[0] = second[0] = 0;
    memcpy(now, set->begin, set->words * sizeof(*now));
    while (!at_end(&text)) {
        uint64_t *before;

        if (!step(set, take_row(set, &text), now, next))
            return false;
        before = now;
        now = next;
        next = before;
    }
    for (size_t i = 0; i < set->words; i++)
        matched |= now[i] & wanted_bits(set, i, wanted);
    return matched != 0;
}

static bool matches(const struct glob_set *set, struct zt_text text, enum wanted wanted)
{
    return set->words == 1 ? matches_in_a_word(set, cursor_over(text), wanted)
                           : matches_in_words(set, cursor_over(text), wanted);
}

bool glob_set_matches(const struct glob_set *set, struct zt_text text)
{
    return matches(set, text, WANTED_END);
}

bool glob_set_can_begin(const struct glob_set *set, struct zt_text beginning)
{
    return matches(set, beginning, WANTED_ANY);
}

bool glob_set_matches_all_below(const struct glob_set *set, struct zt_text beginning)
{
    return matches(set, beginning, WANTED_FINAL_STAR);
}
