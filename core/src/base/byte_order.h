/* Swapping the byte order of words. */
#ifndef ZT_BASE_BYTE_ORDER_H
#define ZT_BASE_BYTE_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Reverses the bytes of each whole word of width bytes (1, 2, 4 or 8). Bytes after the last whole
 * word are unchanged. */
void zt_words_reverse(uint8_t *bytes, size_t length, unsigned width);

#endif
