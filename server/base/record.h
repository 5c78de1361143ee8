/* Binary records: a sequence of little-endian numbers and texts, without names. Every read is
 * checked against the remaining bytes. The first missing field makes the whole record fail, so a
 * caller needs only one check at the end. */
#ifndef BASE_RECORD_H
#define BASE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3-64. */
#define RECORD_HASH_BYTES 8

/* --- writing --- */

/* All zero is an empty record without a limit. */
struct record_writer {
    uint8_t *bytes; /* freed by record_writer_free */
    size_t length;
    size_t capacity;
    size_t limit_bytes; /* a longer record fails; 0: no limit */
    bool failed;        /* out of memory, or too long; never reset */
};

void record_write_bytes(struct record_writer *writer, const void *bytes, size_t length);
/* width: 1 to 8 bytes. */
void record_write_uint(struct record_writer *writer, uint64_t value, size_t width);
/* Writes the length in 4 bytes, then the text without NUL. NULL is an absent text, which differs
 * from an empty one. */
void record_write_text(struct record_writer *writer, const char *text);
/* Writes the hash of all bytes from this position on. */
void record_write_hash(struct record_writer *writer, size_t from);
/* Hands over what was written; the writer is then empty, and its failure forgotten. */
struct record_writer record_writer_take(struct record_writer *writer);
void record_writer_free(struct record_writer *writer);

/* --- reading --- */

struct record_reader {
    const uint8_t *at;
    size_t left;
    bool failed; /* a field was missing: all later numbers are 0 and pointers NULL */
};

/* The result points into the record. */
const uint8_t *record_read_bytes(struct record_reader *reader, size_t length);
uint64_t record_read_uint(struct record_reader *reader, size_t width);
/* Returns a copy, which the caller must free; NULL for an absent text and on failure. */
char *record_read_text(struct record_reader *reader);
/* Reads a hash and compares it with the hash of the bytes from `from` up to here. A difference is a
 * failure. */
bool record_read_hash(struct record_reader *reader, const uint8_t *from);
/* Returns a reader of a record whose last field is the hash of everything before it. The reader has
 * failed if that hash is wrong. */
struct record_reader record_reader_checked(const uint8_t *bytes, size_t length);

#endif
