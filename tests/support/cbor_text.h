/* CBOR from a text that looks like JSON, so that a test shows its manifest.
 *
 * Keys stay in the order given, heads are the shortest. Beyond JSON: texts may have single quotes;
 * h'0102' is a byte string; ^ before an item marks where its head begins, @ before a text where its
 * characters begin. Faults of encoding are written as bytes: !c000. */
#ifndef ZT_TEST_CBOR_TEXT_H
#define ZT_TEST_CBOR_TEXT_H

#include "cbor/cbor_write.h"

/* Appends the encoding of text; fails the running test if text cannot be read. Returns the marked
 * position in the buffer, 0 if there is none. */
size_t cbor_text_append(struct zt_buffer *buffer, const char *text);

#endif
