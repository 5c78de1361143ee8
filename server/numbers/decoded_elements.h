/* The elements of a component of a generation, for a worker. */
#ifndef NUMBERS_DECODED_ELEMENTS_H
#define NUMBERS_DECODED_ELEMENTS_H

#include "base/server.h"
#include "catalog/generation.h"
#include "zt/elements.h"

struct decoded;

struct decoded_elements {
    struct zt_elements elements;
    bool is_sequential; /* threads that read it side by side would be in each other's way */
    /* What is to be closed; NULL where it is not needed. */
    struct decoded *decoded;
    struct zt_source *source;
};

/* Opens all elements, or those of a slice of zt_elements_tensor (or NULL). What is not stored as it
 * is is decoded first, into the cache that all requests share. generation and slice are borrowed.
 * ZT_CORRUPT also if the component decodes to fewer bytes than its shape has; ZT_LIMIT,
 * ZT_UNSUPPORTED, ZT_NO_MEMORY, ZT_IO. error must not be NULL. */
enum zt_status decoded_elements_open(struct server *server, struct generation *generation,
                                     uint32_t object, uint32_t component,
                                     const struct zt_slice *slice,
                                     struct decoded_elements *out_elements, struct zt_error *error);
/* Takes cleared ones. */
void decoded_elements_close(struct decoded_elements *elements);

#endif
