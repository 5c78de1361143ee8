/* Swapping the byte order of words: one loop for each width, which the compiler vectorises. */
#include "base/byte_order.h"

#include <assert.h>
#include <string.h>

static void reverse_2(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t word;

        memcpy(&word, bytes + 2 * i, 2);
        word = __builtin_bswap16(word);
        memcpy(bytes + 2 * i, &word, 2);
    }
}

static void reverse_4(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t word;

        memcpy(&word, bytes + 4 * i, 4);
        word = __builtin_bswap32(word);
        memcpy(bytes + 4 * i, &word, 4);
    }
}

static void reverse_8(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word;

        memcpy(&word, bytes + 8 * i, 8);
        word = __builtin_bswap64(word);
        memcpy(bytes + 8 * i, &word, 8);
    }
}

void zt_words_reverse(uint8_t *bytes, size_t length, unsigned width)
{
    assert(width == 1 || width == 2 || width == 4 || width == 8);
    if (width == 2)
        reverse_2(bytes, length / 2);
    else if (width == 4)
        reverse_4(bytes, length / 4);
    else if (width == 8)
        reverse_8(bytes, length / 8);
}
