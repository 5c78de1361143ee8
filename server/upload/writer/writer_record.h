/* Records of a streaming writer's journal: written and read field by field, little-endian, each
 * behind its length and its CRC-32C, so that what a crash cut off is told from what was
 * acknowledged. */
#ifndef UPLOAD_WRITER_WRITER_RECORD_H
#define UPLOAD_WRITER_WRITER_RECORD_H

#include <stdbool.h>

#include "zt/status.h"

/* Length and CRC before a record; no bytes of length behind the last. */
#define RECORD_HEAD_BYTES 8
#define RECORD_END_BYTES  4
/* Longer ones are not written: names and attributes of one request. */
#define RECORD_MAX_BYTES ((uint32_t)64 << 20)

/* --- writing --- */

struct record {
    uint8_t *bytes; /* head, fields, and an end once it was closed */
    size_t length;
    size_t capacity;
    bool failed; /* for want of memory, or too long: it stays so */
};

void record_begin(struct record *record, uint8_t kind);
void record_put_bytes(struct record *record, const void *bytes, size_t length);
void record_put_uint(struct record *record, uint64_t value);
void record_put_text(struct record *record, struct zt_text text);
/* NULL is told from "". */
void record_put_string(struct record *record, const char *text);
/* Fills in the head, adds an end. False when the record failed. */
bool record_close(struct record *record);
void record_free(struct record *record);

/* --- reading --- */

struct record_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed; /* a field was not there: it stays so, and values are 0 and empty */
};

/* How long the record is that begins with these RECORD_HEAD_BYTES, if it is one. */
uint64_t record_whole_length(const uint8_t *head);
/* The record at the start of bytes: its fields behind the kind, and how far to the next. False at
 * the end, and for what is no whole record. */
bool record_read(const uint8_t *bytes, size_t length, uint8_t *out_kind,
                 struct record_reader *out_reader, size_t *out_whole);
/* Borrowed; NULL when they are not there. */
const uint8_t *record_get_bytes(struct record_reader *reader, size_t length);
uint64_t record_get_uint(struct record_reader *reader);
struct zt_text record_get_text(struct record_reader *reader);
/* A copy, NULL for NULL; freed with free(). */
char *record_get_string(struct record_reader *reader);

#endif
