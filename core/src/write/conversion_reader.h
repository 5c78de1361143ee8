/* A component's bytes on their way into another file: decoded, changed as the projection says, and
 * compared with the digest that the source states. */
#ifndef ZT_WRITE_FEED_H
#define ZT_WRITE_FEED_H

#include "zt/convert.h"

struct zt_conversion_reader;

/* component: of the projection's model. Errors name object and component. ZT_NOT_FOUND when its
 * file is not there, ZT_CORRUPT when its digest is wrong and can be told before decoding. */
enum zt_status zt_conversion_reader_open(const struct zt_conversion *conversion, uint32_t component,
                                         struct zt_conversion_reader **out_feed,
                                         struct zt_error *error);

/* Some of the bytes, borrowed until the next call; *out_length is 0 at the end, which is given only
 * when every check was right: ZT_CORRUPT otherwise. */
enum zt_status zt_conversion_reader_read(struct zt_conversion_reader *reader,
                                         const uint8_t **out_bytes, size_t *out_length,
                                         struct zt_error *error);

/* Whether the digest that the source states of a component, if it states one, is that of the
 * decoded bytes themselves. */
bool zt_digest_is_of_decoded(const struct zt_model *source, const struct zt_component *component);

/* Takes NULL. */
void zt_conversion_reader_close(struct zt_conversion_reader *reader);

#endif
