/* Numbers as text, for what every answer states: printf would take longer than sending it. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stdint.h>
#include <string.h>

/* The digits of the largest number. */
#define DECIMAL_SIZE 20

/* Writes the decimal digits and returns what follows them; no NUL. */
static inline char *decimal_write(char *at, uint64_t number)
{
    char digits[DECIMAL_SIZE];
    unsigned first = DECIMAL_SIZE;

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(at, digits + first, DECIMAL_SIZE - first);
    return at + DECIMAL_SIZE - first;
}

#endif
