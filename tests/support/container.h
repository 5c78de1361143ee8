/* zTensor 0.1 and 1.x files made from a manifest, whole or broken in one place (zt2_file.h makes
 * those of zTensor 2).
 *
 * A file holds its head, data from offset 64 on (byte n is n mod 251), the manifest right after it,
 * and the tail. */
#ifndef ZT_TEST_CONTAINER_H
#define ZT_TEST_CONTAINER_H

#include "cbor/cbor_write.h"
#include "zt/model.h"

enum container_version { CONTAINER_ZT01, CONTAINER_ZT10, CONTAINER_ZT1 };

#define CONTAINER_DATA 64

struct container {
    uint8_t *bytes;
    size_t length;
    uint64_t manifest_offset;
    uint64_t manifest_length;
    /* Absolute position of what ^ or @ marks in the manifest's text; ZT_NO_OFFSET if nothing is
     * marked. */
    uint64_t mark;
};

/* Makes a file from a manifest's text (cbor_text.h). container starts out cleared; its previous
 * file is freed. */
void container_make(struct container *container, enum container_version version, size_t data_length,
                    const char *manifest);
/* Like container_make, from the manifest's bytes. */
void container_make_bytes(struct container *container, enum container_version version,
                          size_t data_length, const struct zt_buffer *manifest);
void container_free(struct container *container);

/* Opens a copy of the first length bytes of the file. */
enum zt_status container_open(const struct container *container, size_t length,
                              struct zt_model **out_model, struct zt_error *error);

/* Opens the whole file; fails the running test if it does not open. */
struct zt_model *container_model(const struct container *container);

/* Fails the running test unless the whole file is refused by that rule at that offset, with
 * ZT_INVALID. */
void container_assert_refused(const struct container *container, const char *rule, uint64_t offset);

#endif
