/* The bytes of exported components, decoded where necessary. For workers, since decoding takes
 * time. The component decoded last is kept, so that sequential reads decode it only once. */
#ifndef DERIVED_EXPORT_BYTES_H
#define DERIVED_EXPORT_BYTES_H

#include "base/server.h"
#include "catalog/generation.h"
#include "zt/component_view.h"
#include "zt/select.h"

/* The origin of an exported file's component, and its conversion. */
struct export_origin {
    uint32_t object; /* both indexes refer to the generation's model */
    uint32_t component;
    struct zt_widening widening;
    int64_t axis; /* axis along which the object is cut; ZT_AXIS_NONE: it is whole */
};

/* The destination of a read. */
struct export_buffer {
    void *at;
    size_t length;
};

struct export_bytes;

/* The generation and cut (NULL: none) must outlive the result. The cut is applied along the axis of
 * each origin or, if to_f32, to the widened object. Returns NULL if out of memory. */
struct export_bytes *export_bytes_new(struct server *server, struct generation *generation,
                                      const struct zt_cut *cut, bool to_f32);
/* Accepts NULL; void * for request_hold. */
void export_bytes_free(void *bytes);

/* Reads buffer.length bytes at an offset of the exported component. error must not be NULL; on
 * failure it names the object and the component. */
enum zt_status export_bytes_read(struct export_bytes *bytes, const struct export_origin *origin,
                                 uint64_t offset, struct export_buffer buffer,
                                 struct zt_error *error);

/* Finds the exported bytes in a stored file. Returns false if they must be decoded, gathered or
 * converted. */
bool export_bytes_stored(const struct export_bytes *bytes, const struct export_origin *origin,
                         struct zt_source **out_source, uint64_t *out_offset);

#endif
