/* The decoded bytes of a component, for a command that reads them more than once. */
#ifndef FILES_DECODED_FILE_H
#define FILES_DECODED_FILE_H

#include "zt/model.h"

struct decoded_file {
    struct zt_source *source; /* of the decoded bytes, from base on */
    uint64_t base;
    bool is_sequential; /* threads that read it side by side would be in each other's way */
    bool is_owned;
};

/* What is not stored as it is, or can be gathered or decoded in parts, is decoded into an unnamed
 * file. stored is the file that holds the component, and is borrowed. Fails as zt_decoder_open and
 * zt_decoder_read do; ZT_IO if there is no space. */
enum zt_status decoded_file_open(const struct zt_component *component, struct zt_source *stored,
                                 struct decoded_file *out_file, struct zt_error *error);
/* Takes a cleared one. */
void decoded_file_close(struct decoded_file *file);

#endif
