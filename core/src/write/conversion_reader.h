/* Reading a component's bytes for conversion: they are decoded, integers and floats are widened as
 * the projection requires, and the bytes are compared with the digest that the source states. */
#ifndef ZT_WRITE_CONVERSION_READER_H
#define ZT_WRITE_CONVERSION_READER_H

#include "zt/convert.h"

struct zt_conversion_reader;

/* component is an index into the components of the projection's model. Errors name object and
 * component. ZT_NOT_FOUND if the component's file is missing; ZT_CORRUPT if its digest covers
 * stored bytes and does not match them. */
enum zt_status zt_conversion_reader_open(const struct zt_conversion *conversion, uint32_t component,
                                         struct zt_conversion_reader **out_reader,
                                         struct zt_error *error);

/* Returns the next bytes, borrowed until the next call; *out_length is 0 at the end. The end is
 * reported only if every check passed; otherwise the call fails with ZT_CORRUPT. */
enum zt_status zt_conversion_reader_read(struct zt_conversion_reader *reader,
                                         const uint8_t **out_bytes, size_t *out_length,
                                         struct zt_error *error);

/* Whether the digest that the source states for a component, if any, covers exactly its decoded
 * bytes. */
bool zt_digest_is_of_decoded(const struct zt_model *source, const struct zt_component *component);

/* Takes NULL. */
void zt_conversion_reader_close(struct zt_conversion_reader *reader);

#endif
