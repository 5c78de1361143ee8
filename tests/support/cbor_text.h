/* CBOR from a text that looks like JSON, so that a test shows the manifest it speaks of.
 *
 * Keys stay in the order given, heads are the shortest. Beyond JSON: h'0102' is a byte string; ^
 * before an item marks where its head begins, @ before a text where its characters begin. Faults of
 * encoding are written as bytes: !c000. */
#ifndef ZT_TEST_CBOR_TEXT_H
#define ZT_TEST_CBOR_TEXT_H

#include "cbor/cbor_write.h"

/* Appends text's encoding; fails the running test when text cannot be read. Gives back the marked
 * position in the buffer (0 where nothing is marked). */
size_t cbor_text_append(struct zt_buffer *buffer, const char *text);

#endif
