/* The decoded bytes of a component, for a command that reads them more than once. */
#ifndef FILES_DECODED_FILE_H
#define FILES_DECODED_FILE_H

#include "zt/model.h"

struct decoded_file {
    struct zt_source *source; /* the decoded bytes, from base on */
    uint64_t base;
    bool is_sequential; /* concurrent reads by several threads would slow each other down */
    bool is_owned;
};

/* Opens a component's decoded bytes. Components that are stored plain, or can be gathered or
 * decoded in parts, are read directly from stored; all others are decoded into an unnamed file.
 * stored is the file that contains the component, and is borrowed. Fails as zt_decoder_open and
 * zt_decoder_read do, and with ZT_IO if there is no space. */
enum zt_status decoded_file_open(const struct zt_component *component, struct zt_source *stored,
                                 struct decoded_file *out_file, struct zt_error *error);
/* Accepts a cleared structure. */
void decoded_file_close(struct decoded_file *file);

#endif
