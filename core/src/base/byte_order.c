/* Swapping the byte order of words: one loop for each width, which the compiler vectorises. */
#include "base/byte_order.h"

#include <assert.h>
#include <string.h>

#define REVERSE_EACH(type, swap)                                   \
    do {                                                           \
        for (size_t i = 0; i < length / sizeof(type); i++) {       \
            type word;                                             \
                                                                   \
            memcpy(&word, bytes + sizeof(type) * i, sizeof(type)); \
            word = swap(word);                                     \
            memcpy(bytes + sizeof(type) * i, &word, sizeof(type)); \
        }                                                          \
    } while (0)

void zt_words_reverse(uint8_t *bytes, size_t length, unsigned width)
{
    assert(width == 1 || width == 2 || width == 4 || width == 8);
    switch (width) {
    case 2:
        REVERSE_EACH(uint16_t, __builtin_bswap16);
        break;
    case 4:
        REVERSE_EACH(uint32_t, __builtin_bswap32);
        break;
    case 8:
        REVERSE_EACH(uint64_t, __builtin_bswap64);
        break;
    default:
        break;
    }
}
