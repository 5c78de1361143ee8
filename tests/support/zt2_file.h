/* zTensor 2 files made from a manifest's text, whole or broken in one place. */
#ifndef ZT_TEST_ZT2_FILE_H
#define ZT_TEST_ZT2_FILE_H

#include "zt/model.h"

#define ZT2_FILE_FOOTER 40

struct zt2_file {
    uint8_t *bytes;
    size_t length;
    uint64_t manifest_offset;
    /* Absolute position of what ^ or @ marks in the manifest's text; ZT_NO_OFFSET if nothing is
     * marked. */
    uint64_t mark;
};

/* Makes a file of header, zeros up to manifest_offset, the manifest (cbor_text.h) and the footer.
 * file starts out cleared; its previous bytes are freed. */
void zt2_file_make(struct zt2_file *file, uint64_t manifest_offset, const char *manifest);
/* Writes the current hash of the manifest's bytes into the footer. */
void zt2_file_seal(struct zt2_file *file);
void zt2_file_free(struct zt2_file *file);

/* Opens the file's bytes as zTensor 2. */
enum zt_status zt2_file_open(const struct zt2_file *file, struct zt_model **out_model,
                             struct zt_error *error);

/* Where zt2_open_text puts the manifest; blobs may lie in [4096, ZT2_MANIFEST_AT). */
#define ZT2_MANIFEST_AT 16384

/* An object "a" of one part "data", with its layout's fields. */
#define ZT2_OBJECT(part, rest) "{'objects':{@'a':{'parts':{'data':" part "}," rest "}}}"
#define ZT2_PART               "{'blob':[4096,8],'dtype':'u8'}"
#define ZT2_REST               "'shape':[8],'layout':'dense'"

/* Opens the file and frees the model again; checks that there is one exactly when the status is
 * ZT_OK. */
enum zt_status zt2_file_try(const struct zt2_file *file, struct zt_error *error);
/* Makes a file of the manifest's text and tries it. */
enum zt_status zt2_text_try(const char *manifest, struct zt_error *error);
/* Fails the running test unless the manifest's text is refused by that rule, at the marked
 * position. */
void zt2_text_refused(const char *manifest, const char *rule, struct zt_error *error);

#endif
