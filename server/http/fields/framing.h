/* Checks that a request's header is unambiguous about where the request ends and which host it is
 * for (RFC 9112 sections 3.2, 5, 6 and 11.2).
 *
 * The HTTP library accepts headers that a proxy in front of it may read differently. The server
 * rejects all of them and closes the connection. */
#ifndef HTTP_FIELDS_FRAMING_H
#define HTTP_FIELDS_FRAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "http/fields/header_field.h"

enum framing_verdict {
    FRAMING_SOUND,
    FRAMING_BROKEN,      /* 400, and the connection must be closed */
    FRAMING_EXPECTATION, /* 417: an Expect other than 100-continue */
};

/* The body_length of a chunked body. */
#define FRAMING_CHUNKED UINT64_MAX
/* The body_length of a body that is longer than any file. */
#define FRAMING_LENGTH_MAX (UINT64_MAX - 1)

struct framing {
    enum framing_verdict verdict;
    const char *why; /* error message; static; NULL if the header is sound */
    uint64_t body_length;
};

/* http_1_0: the request's version is 1.0 and not later. */
void framing_check(const struct header_field *fields, unsigned count, bool http_1_0,
                   struct framing *out_framing);

/* Returns true if a value of Host is uri-host [ ":" port ] (RFC 9112 section 3.2, RFC 3986 section
 * 3.2.2). An empty value is valid. */
bool host_is_valid(const char *value, size_t length);

/* Returns true if a method is a token (RFC 9110 section 9.1). The HTTP library accepts any text up
 * to a blank. */
bool method_is_token(const char *method);

/* A header in the memory in which the HTTP library parsed it.
 *
 * libmicrohttpd before 1.0 ends a header at a line with an empty field name, cuts a value at a NUL,
 * appends folded lines to the wrong text and accepts a bare LF as the end of a line; a proxy in
 * front may see other fields, or another request. The library parses in place and overwrites the
 * separators between its texts with NULs. If these texts follow each other without a gap from the
 * first byte to the last, nothing is hidden. */
struct header_block {
    const char *bytes; /* beginning with the method */
    size_t length;     /* up to and including the empty line */
    size_t target_length;
    const char *version; /* the library's pointer into bytes */
};

/* Returns true if the block consists exactly of method, target and version, one line "name: value"
 * per field in order, and an empty line, each ended by CR LF. The fields must point into the
 * block. */
bool header_block_is_plain(const struct header_block *block, const struct header_field *fields,
                           unsigned count);

#endif
