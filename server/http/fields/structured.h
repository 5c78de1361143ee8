/* Structured fields (RFC 8941): dictionaries, read member by member. */
#ifndef HTTP_FIELDS_STRUCTURED_H
#define HTTP_FIELDS_STRUCTURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/status.h"

enum structured_kind {
    STRUCTURED_INTEGER,
    STRUCTURED_DECIMAL,
    STRUCTURED_STRING,
    STRUCTURED_TOKEN,
    STRUCTURED_BYTES,
    STRUCTURED_BOOLEAN,
    STRUCTURED_LIST
};

/* Parameters and the items of inner lists are parsed and dropped. */
struct structured_member {
    struct zt_text key;
    enum structured_kind kind;
    int64_t integer;     /* STRUCTURED_INTEGER */
    struct zt_text text; /* STRUCTURED_BYTES: base64, still encoded */
};

struct structured_reader {
    const char *at;
    bool begun;
};

enum structured_answer { STRUCTURED_MEMBER, STRUCTURED_END, STRUCTURED_MALFORMED };

/* Starts at the beginning of a field's value. */
void structured_begin(struct structured_reader *reader, const char *field);

/* Reads the next member of a dictionary (section 4.2.2). Must not be called after END or
 * MALFORMED. */
enum structured_answer structured_next(struct structured_reader *reader,
                                       struct structured_member *out_member);

/* Decodes base64 into exactly length bytes; padding is optional (section 4.2.7). Returns false,
 * without changing out_bytes, if it is malformed or has another length. */
bool structured_decode(struct zt_text base64, uint8_t *out_bytes, size_t length);

#endif
