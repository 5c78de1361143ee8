/* .mag files of each layout, from fields that a test can change. */
#ifndef ZT_TEST_MAG_FILE_H
#define ZT_TEST_MAG_FILE_H

#include "zip_file.h"

/* MAG_M3: a snapshot of version 100; MAG_M4: one of version 200. */
enum mag_layout { MAG_M1, MAG_M2, MAG_M3, MAG_M4 };

/* The fields of a record; a test changes one of them. */
struct mag_record {
    const char *key;
    uint64_t shape[6];
    uint32_t dtype;
    uint32_t rank; /* MAG_M1: aux's second byte */
    uint32_t aux;  /* added to what the others make of it */
    uint64_t elements;
    uint64_t length;
    uint64_t offset; /* absolute; MAG_M3: from the data on */
};

/* Two tensors, "a" of six f32 and "b" of four bool, and two metadata. */
struct mag_file {
    enum mag_layout layout;
    struct mag_record records[2];
    const char *metadata_key;
    uint32_t metadata_aux;
    uint32_t counts[2]; /* added to the right ones: tensors, metadata */
    struct bytes bytes;
    size_t record_at[2];
    size_t metadata_at;
    size_t end; /* of the records */
};

#define MAG_DATA_AT 512

bool mag_layout_is_snapshot(enum mag_layout layout);

/* Describes a right file; a test changes a member, and makes it. */
void mag_set_up(struct mag_file *file, enum mag_layout layout);

/* Builds the bytes, in place of earlier ones. The caller frees them. */
void mag_make(struct mag_file *file);

/* Writes the checksum of the bytes as they are now. */
void mag_seal(struct mag_file *file);

/* Makes the file, and fails the running test unless it is refused by that rule at that offset. */
void mag_assert_refused(struct mag_file *file, const char *rule, uint64_t offset);

/* Changes one member of the second record of a file, which must fail so many bytes behind that
 * record's beginning. */
#define MAG_REFUSED(layout, member, value, rule, distance)                                 \
    do {                                                                                   \
        struct mag_file file_;                                                             \
                                                                                           \
        mag_set_up(&file_, (layout));                                                      \
        mag_make(&file_);                                                                  \
        file_.records[1].member = (value);                                                 \
        mag_assert_refused(&file_, "mag §Tensors " rule, file_.record_at[1] + (distance)); \
    } while (0)

#endif
