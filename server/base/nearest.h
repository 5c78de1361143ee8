/* The word that was probably meant: "did you mean …". */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* word is NULL until a word near enough has been offered. */
struct nearest {
    const char *text;
    const char *word; /* borrowed */
    unsigned distance;
};

/* text is borrowed. */
void nearest_begin(struct nearest *nearest, const char *text);
/* Takes the word if it is nearer than those before it: of letters left out, added, replaced or
 * swapped with their neighbour, at most one of three, and one at least; or if text begins it. */
void nearest_offer(struct nearest *nearest, const char *word);

#endif
