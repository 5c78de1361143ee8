/* One field of a request's header. */
#ifndef HTTP_FIELDS_HEADER_FIELD_H
#define HTTP_FIELDS_HEADER_FIELD_H

#include <stdint.h>

/* Points into the header's memory; both texts also end with a NUL. */
struct header_field {
    const char *name;
    const char *value;
    uint32_t name_length;
    uint32_t value_length;
};

#endif
