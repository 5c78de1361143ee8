/* zTensor 1.x: reading one object of the manifest into the model. */
#ifndef ZT_FORMATS_ZT_ZT1_OBJECT_H
#define ZT_FORMATS_ZT_ZT1_OBJECT_H

#include "formats/zt/fields.h"

extern const struct zt_family_rules zt1_rules;

struct zt1_reading {
    struct zt_builder *builder;
    struct zt_cbor_reader reader;
    /* Whether the file is zTensor 1.0, where each tensor has one dtype, given by its long name. */
    bool is_1_0;
    /* Position of the first dtype that only zTensor 1.1 has (complex64, ...), or ZT_NO_OFFSET. */
    uint64_t dtype_1_1_offset;
};

/* Reads the value of one entry of "objects" ("tensors" in 1.0). For zt_field_entries; context is
 * the zt1_reading. */
enum zt_status zt1_object_read(void *context, const struct zt_cbor_item *key,
                               struct zt_error *error);

#endif
