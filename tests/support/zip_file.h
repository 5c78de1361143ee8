/* NPY arrays and ZIP archives for tests, whole or broken in one place. */
#ifndef ZT_TEST_ZIP_FILE_H
#define ZT_TEST_ZIP_FILE_H

#include "handmade.h"

/* Appends an NPY array: version 1.0, the text of the dictionary, then the data. Returns the
 * header's length. */
size_t npy_append(struct bytes *bytes, const char *dict, const void *data, size_t length);

#define ZIP_FILE_ENTRIES 8

/* An archive under construction; starts out cleared. Positions are absolute; tests break things
 * there. */
struct zip_file {
    struct bytes bytes;
    struct bytes records;
    unsigned count;
    size_t local_at[ZIP_FILE_ENTRIES];
    size_t data_at[ZIP_FILE_ENTRIES];
    size_t data_length[ZIP_FILE_ENTRIES];
    size_t record_at[ZIP_FILE_ENTRIES]; /* in the directory, from zip_file_end on */
    size_t directory_at;
    size_t end_at;
    size_t end64_at;
};

/* How an entry is written. */
enum zip_file_kind { ZIP_FILE_STORED, ZIP_FILE_DEFLATED, ZIP_FILE_ZIP64, ZIP_FILE_DESCRIPTOR };

void zip_file_add(struct zip_file *zip, const char *name, enum zip_file_kind kind,
                  const struct bytes *content);
/* Adds one array of u1 with length elements: 0, 1, 2… */
void zip_file_add_u8(struct zip_file *zip, const char *name, enum zip_file_kind kind,
                     unsigned length);
/* Appends directory and end record, and zip64's end record if is_wide. */
void zip_file_end(struct zip_file *zip, const char *comment, bool is_wide);
void zip_file_free(struct zip_file *zip);

/* Opens the first length bytes of a file, from a copy of exactly that length. */
enum zt_status bytes_open(const struct bytes *bytes, size_t length, struct zt_model **out_model,
                          struct zt_error *error);
/* Opens all of the bytes; fails the running test if they do not open. */
struct zt_model *bytes_model(const struct bytes *bytes);
/* Fails the running test unless the bytes are refused by that rule at that offset, with
 * ZT_INVALID. */
void bytes_assert_refused(const struct bytes *bytes, const char *rule, uint64_t offset);
/* Fails the running test unless the bytes are ZT_UNSUPPORTED with a message that contains the
 * text. */
void bytes_assert_unsupported(const struct bytes *bytes, const char *part_of_message);

/* Opens every prefix of first bytes or more, which must be refused by a rule; and the bytes with
 * each bit from first up to end flipped, which must be refused or give parts within the file. */
void bytes_assert_survive(const struct bytes *bytes, size_t first, size_t end);

void bytes_put_le(uint8_t *at, uint64_t value, unsigned width);

#endif
