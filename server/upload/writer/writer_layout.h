/* Computes the file for an upload's contents: the positions of its components, and the bytes after
 * them. */
#ifndef UPLOAD_WRITER_WRITER_LAYOUT_H
#define UPLOAD_WRITER_WRITER_LAYOUT_H

#include "upload/writer/writer_session.h"

struct writer_layout {
    struct writer_session *session;
    struct writer_component **components; /* all, in the order of "data"; final_offset is set */
    size_t count;
    size_t capacity;
    bool is_tight;     /* in "data" they already have their final offsets */
    uint64_t data_end; /* where the manifest begins */
    uint8_t *end;      /* manifest and footer */
    size_t end_length;
};

/* The contents must not change during the call. Checks the rules for the objects' layouts: returns
 * false with 422 invalid-model that names the object and the component. */
bool writer_layout_make(struct writer_session *session, struct writer_layout *out_layout,
                        struct failure *failure);
void writer_layout_free(struct writer_layout *layout);

#endif
