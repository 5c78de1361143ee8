/* Metadata of a .mag file as a model's attributes. */
#ifndef ZT_FORMATS_MAG_ATTRIBUTES_H
#define ZT_FORMATS_MAG_ATTRIBUTES_H

#include "formats/mag_records.h"

/* The entries so far. Zero-initialised; freed with mag_attributes_free. */
struct mag_attributes {
    struct mag_attribute *list;
    size_t count;
    size_t capacity;
};

/* The key is in the builder's manifest, which begins at 0. ZT_NO_MEMORY. */
enum zt_status mag_attributes_add(struct mag_attributes *attributes,
                                  const struct zt_builder *builder,
                                  const struct mag_metadata *metadata, struct zt_error *error);

/* Gives the model one CBOR map of them, in the order of their names. Rule "mag §Names
 * DuplicateName". */
enum zt_status mag_attributes_settle(struct mag_attributes *attributes,
                                     const struct zt_builder *builder, struct zt_error *error);

void mag_attributes_free(struct mag_attributes *attributes);

#endif
