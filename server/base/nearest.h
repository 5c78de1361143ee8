/* Finds the word that was probably meant: "did you mean …". */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* word is NULL until a near enough word has been offered. */
struct nearest {
    const char *text;
    const char *word; /* borrowed */
    unsigned distance;
};

/* text must stay valid. */
void nearest_begin(struct nearest *nearest, const char *text);
/* Takes the word if it is nearer than all words before it, and near enough: at most one of three
 * letters (but at least one) is missing, added, replaced or swapped with its neighbour, or text is
 * a prefix of the word. */
void nearest_offer(struct nearest *nearest, const char *word);

#endif
