/* The elements of a component of a generation, for a worker. */
#ifndef NUMBERS_DECODED_ELEMENTS_H
#define NUMBERS_DECODED_ELEMENTS_H

#include "base/server.h"
#include "catalog/generation.h"
#include "zt/elements.h"

struct decoded;
struct statistics_query;

struct decoded_elements {
    struct zt_elements elements;
    bool is_sequential; /* threads that read it side by side would be in each other's way */
    /* What is to be closed; NULL where it is not needed. */
    struct decoded *decoded;
    struct zt_source *source;
};

/* Opens the elements that an order names by object, component and slice. Encoded ones are decoded
 * first, into the cache that all requests share. generation and the order's slice are borrowed.
 * ZT_CORRUPT also if the component decodes to fewer bytes than its shape has; ZT_LIMIT,
 * ZT_UNSUPPORTED, ZT_NO_MEMORY, ZT_IO. error must not be NULL. */
enum zt_status decoded_elements_open(struct server *server, struct generation *generation,
                                     const struct statistics_query *order,
                                     struct decoded_elements *out_elements, struct zt_error *error);
/* Takes cleared ones. */
void decoded_elements_close(struct decoded_elements *elements);

#endif
