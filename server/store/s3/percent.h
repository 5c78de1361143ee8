/* Percent-encoding as AWS signs it: all but A-Za-z0-9-._~ is encoded, with upper-case digits. */
#ifndef STORE_S3_PERCENT_H
#define STORE_S3_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#include "zt/text.h"

/* Appends a text, encoded, to out, which holds *used bytes and a NUL, and has room for size.
 * keep_slash keeps '/', as in a path. Returns false, with out unchanged, if there is no room. */
bool percent_append(char *out, size_t size, size_t *used, struct zt_text text, bool keep_slash);

/* Appends a text that needs no encoding. */
bool percent_append_plain(char *out, size_t size, size_t *used, const char *text);

/* Decodes in place; '+' is kept. Returns false for a '%' without two digits, or a NUL; the text
 * then ends before it. */
bool percent_decode_key(char *text, size_t *length);

#endif
