/* The words of a storage in the machine's arena. */
#ifndef ZT_PICKLE_STORAGE_WORDS_H
#define ZT_PICKLE_STORAGE_WORDS_H

enum {
    STORAGE_LINK, /* the next storage's index; then the reader's number */
    STORAGE_TYPE, /* its number; then the position of the opcode */
    STORAGE_KEY,  /* a value */
    STORAGE_COUNT,
    STORAGE_VIEW_OFFSET,
    STORAGE_VIEW_COUNT,
    STORAGE_WORDS
};

#endif
