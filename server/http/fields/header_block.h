/* The header as it lies in the connection's memory, compared with what the HTTP library made of it.
 *
 * libmicrohttpd before 1.0 ends a header at a line with an empty field name, cuts a value at a NUL,
 * glues folded lines to the wrong text and takes a bare LF for a line's end; a proxy in front may
 * see other fields, or another request, than it does. It parses in place, and writes NULs over what
 * separates the texts that it points to: where these follow each other without a gap from the first
 * byte to the last, nothing was hidden. */
#ifndef HTTP_FIELDS_HEADER_BLOCK_H
#define HTTP_FIELDS_HEADER_BLOCK_H

#include "http/exchange/request_state.h"

struct header_block {
    const char *bytes; /* begin with the method */
    size_t length;     /* up to and with the empty line */
    size_t target_length;
    const char *version; /* the library's pointer into bytes */
};

/* Whether the block is method, target and version, one line "name: value" for each of the fields,
 * in their order, and an empty line, each with CR LF at its end; and nothing else. Fields point
 * into the block. */
bool header_block_is_plain(const struct header_block *block, const struct header_field *fields,
                           unsigned count);

#endif
