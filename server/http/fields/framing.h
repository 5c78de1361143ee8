/* Checks that a request's header leaves no doubt about where the request ends and which host it is
 * for (RFC 9112 sections 3.2, 5, 6 and 11.2).
 *
 * The HTTP library accepts headers that it and a proxy in front of it may read differently. All of
 * them are refused here, and the connection is closed. */
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
/* The body_length of a body longer than any file can be. */
#define FRAMING_LENGTH_MAX (UINT64_MAX - 1)

struct framing {
    enum framing_verdict verdict;
    const char *why; /* for a person; static; NULL if sound */
    uint64_t body_length;
};

/* http_1_0: the request has version 1.0, not a later one. */
void framing_check(const struct header_field *fields, unsigned count, bool http_1_0,
                   struct framing *out_framing);

/* Whether a value of Host is uri-host [ ":" port ] (RFC 9112 section 3.2, RFC 3986 section 3.2.2).
 * An empty value is valid. */
bool host_is_valid(const char *value, size_t length);

/* Whether a method is a token (RFC 9110 section 9.1). The HTTP library accepts anything up to a
 * blank. */
bool method_is_token(const char *method);

/* A header in the memory that the HTTP library parsed it in.
 *
 * libmicrohttpd before 1.0 ends a header at a line with an empty field name, cuts a value at a NUL,
 * glues folded lines to the wrong text and accepts a bare LF as the end of a line; a proxy in front
 * may see other fields, or another request. It parses in place and overwrites the separators
 * between the texts that it points to with NULs: if these texts follow each other without a gap
 * from the first byte to the last, nothing is hidden. */
struct header_block {
    const char *bytes; /* begin with the method */
    size_t length;     /* up to and including the empty line */
    size_t target_length;
    const char *version; /* the library's pointer into bytes */
};

/* Whether the block is method, target and version, one line "name: value" for each of the fields,
 * in their order, and an empty line, each ended by CR LF; and nothing else. Fields point into the
 * block. */
bool header_block_is_plain(const struct header_block *block, const struct header_field *fields,
                           unsigned count);

#endif
