/* Reads the lines of a commit (NDJSON) as they arrive. A line may contain a whole file as base64,
 * in the member "content" of its "value", in any position. It is decoded and passed on piece by
 * piece. Only the rest of the line is kept, up to a limit. */
#ifndef HUB_WRITE_COMMIT_LINES_H
#define HUB_WRITE_COMMIT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/text.h"

/* Maximum length of a line without the content of its file. Descriptions may be long, and clients
 * cannot shorten them. The limit is below JSON_BODY_MAX, and a client may only have a few commits
 * open (upload.open_per_client), so lines use no more memory than other requests. */
#define COMMIT_LINE_MAX ((size_t)1 << 20)
/* Memory kept from line to line. Longer lines release the rest at their end, so that a commit that
 * continues, or waits, has no more than this. */
#define COMMIT_LINE_KEPT ((size_t)64 << 10)
/* Decoded bytes per call of content. */
#define COMMIT_PIECE_BYTES ((size_t)64 << 10)

enum commit_content {
    COMMIT_NO_CONTENT,
    COMMIT_CONTENT,    /* passed on; the line has an empty text instead */
    COMMIT_NOT_BASE64, /* everything before the mistake was passed on */
};

struct commit_lines {
    /* Set by the owner. Each returns false to stop reading. */
    bool (*content)(void *context, const uint8_t *bytes, size_t length);
    /* Gets the line without its end; the text is valid during the call. Empty lines are skipped,
     * but counted. */
    bool (*line)(void *context, struct zt_text line, enum commit_content content);
    void *context;

    /* The number of the current line, from 1. */
    unsigned number;
    bool is_too_long;
    bool is_out_of_memory;

    /* Private. */
    char *text;
    size_t length;
    size_t capacity;
    unsigned depth;
    size_t string_begin;
    unsigned escape; /* characters of an escape still missing, the first of them special */
    unsigned escaped;
    bool in_string;
    bool in_content;
    bool is_name;    /* the last string is "content", in the object "value" */
    bool is_awaited; /* and a colon followed */
    enum commit_content state;
    uint32_t bits;
    unsigned digits; /* digits so far in the group of four */
    unsigned padding;
    uint8_t *piece;
    size_t piece_length;
};

/* Call it after setting the callbacks in a cleared structure. Returns false if out of memory. */
bool commit_lines_begin(struct commit_lines *lines);
/* Returns false if a callback stops, the line is too long, or there is no memory for it. */
bool commit_lines_take(struct commit_lines *lines, const char *bytes, size_t length);
/* The end of the body also ends a line. */
bool commit_lines_finish(struct commit_lines *lines);
/* May be called on a cleared structure. */
void commit_lines_free(struct commit_lines *lines);

#endif
