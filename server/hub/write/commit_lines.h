/* The lines of a commit (NDJSON), read as they arrive. A line may hold a whole file as base64, in
 * the member "content" of its "value", wherever that stands among the others: it is decoded and
 * passed on piece by piece, and only the rest of the line is kept, within a bound. */
#ifndef HUB_WRITE_COMMIT_LINES_H
#define HUB_WRITE_COMMIT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/text.h"

/* Of a line, without the content of its file: a description may be long, and clients cannot cut it.
 * It is less than any JSON body may have (JSON_BODY_MAX), and one client has only so many commits
 * at a time (upload.open_per_client): lines bound memory no worse than other requests do. */
#define COMMIT_LINE_MAX ((size_t)1 << 20)
/* Kept from line to line; what a longer one has taken is given back at its end, so that a commit
 * that goes on, or waits, has no more than this. */
#define COMMIT_LINE_KEPT ((size_t)64 << 10)
/* Decoded bytes that are passed on at a time. */
#define COMMIT_PIECE_BYTES ((size_t)64 << 10)

enum commit_content {
    COMMIT_NO_CONTENT,
    COMMIT_CONTENT,    /* passed on; an empty text stands for it in the line */
    COMMIT_NOT_BASE64, /* what came before the mistake was passed on */
};

struct commit_lines {
    /* Set by the owner. Either returns false to end the reading. */
    bool (*content)(void *context, const uint8_t *bytes, size_t length);
    /* The line without its end; the text is valid during the call. Empty lines are left out, but
     * counted. */
    bool (*line)(void *context, struct zt_text line, enum commit_content content);
    void *context;

    /* From 1; that of the line which is read. */
    unsigned number;
    bool is_too_long;
    bool is_out_of_memory;

    /* Private. */
    char *text;
    size_t length;
    size_t capacity;
    unsigned depth;
    size_t string_begin;
    unsigned escape; /* characters of an escape that are still to come, the first of them special */
    unsigned escaped;
    bool in_string;
    bool in_content;
    bool is_name;    /* the last string is "content", in the object "value" */
    bool is_awaited; /* and a colon followed */
    enum commit_content state;
    uint32_t bits;
    unsigned digits; /* of the group of four */
    unsigned padding;
    uint8_t *piece;
    size_t piece_length;
};

/* After the callbacks were set in a cleared structure. False: out of memory. */
bool commit_lines_begin(struct commit_lines *lines);
/* False: a callback wants no more, the line is too long, or there is no memory for it. */
bool commit_lines_take(struct commit_lines *lines, const char *bytes, size_t length);
/* The end of the body ends a line, too. */
bool commit_lines_finish(struct commit_lines *lines);
/* Harmless on a cleared structure. */
void commit_lines_free(struct commit_lines *lines);

#endif
