/* zTensor 2 files made from a manifest's text, whole or broken in one place. */
#ifndef ZT_TEST_ZT2_FILE_H
#define ZT_TEST_ZT2_FILE_H

#include "zt/model.h"

#define ZT2_FILE_FOOTER 40

struct zt2_file {
    uint8_t *bytes;
    size_t length;
    uint64_t manifest_offset;
    /* Absolute position of what ^ or @ marks in the manifest's text; ZT_NO_OFFSET where nothing is marked. */
    uint64_t mark;
};

/* A file of header, zeros up to manifest_offset, the manifest (cbor_text.h) and the footer. Frees what file held; begin
 * with a cleared one. */
void zt2_file_make(struct zt2_file *file, uint64_t manifest_offset, const char *manifest);
/* Puts the hash of the manifest's bytes, as they are now, into the footer. */
void zt2_file_seal(struct zt2_file *file);
void zt2_file_free(struct zt2_file *file);

/* Opens the file's bytes as zTensor 2. */
enum zt_status zt2_file_open(const struct zt2_file *file, struct zt_model **out_model, struct zt_error *error);

#endif
