/* Uses the Damerau-Levenshtein distance, which counts swapped neighbours once. */
#include "base/nearest.h"

#include <limits.h>
#include <string.h>

/* Longer words are not compared. */
#define LENGTH_MAX 63
/* Prefixes of at least this length count as abbreviations. */
#define ABBREVIATION_MIN 2

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance_between(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[LENGTH_MAX + 1][LENGTH_MAX + 1];

    for (unsigned i = 0; i <= a_length; i++)
        rows[i][0] = i;
    for (unsigned j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a_length; i++)
        for (unsigned j = 1; j <= b_length; j++) {
            unsigned best = least(rows[i - 1][j], rows[i][j - 1]) + 1;

            best = least(best, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, rows[i - 2][j - 2] + 1);
            rows[i][j] = best;
        }
    return rows[a_length][b_length];
}

void nearest_begin(struct nearest *nearest, const char *text)
{
    *nearest = (struct nearest){.text = text, .distance = UINT_MAX};
}

void nearest_offer(struct nearest *nearest, const char *word)
{
    const size_t length = strlen(nearest->text);
    const size_t word_length = strlen(word);
    const unsigned most = length < 3 ? 1 : (unsigned)length / 3;
    unsigned distance;

    if (length == 0 || length > LENGTH_MAX || word_length > LENGTH_MAX)
        return;
    distance = distance_between(nearest->text, length, word, word_length);
    if (distance > most && length > ABBREVIATION_MIN && strncmp(nearest->text, word, length) == 0)
        distance = most;
    if (distance > most || distance >= nearest->distance)
        return;
    nearest->distance = distance;
    nearest->word = word;
}
